"""Ballots: what the teachers say about one query, counted per label.

A ballot is a row of truth values, one per label; any value but 0 is a vote, so that no teacher
adds more than 1 to a count, whatever it sends. Shapes and number types are public; what is wrong
with them is an error. Nothing about the values ever is.

>>> ballots = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1]])
>>> count_votes(ballots).tolist()
[2, 2, 1]
>>> count_votes(cut_ballots(ballots, max_votes=1)).tolist()
[2, 1, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topsecret.errors import InvalidParameter

Ballots = NDArray[np.bool_]
Counts = NDArray[np.int64]

_BLOCK = 255  # rows of 0 and 1 that a byte can add up


def as_ballots(votes: Any, teachers: int, labels: int) -> Ballots:
    """A matrix of teachers × labels as truth values."""
    array = np.asarray(votes)
    if array.shape != (teachers, labels):
        raise InvalidParameter(
            f"votes have the shape {array.shape}; they must have one row for each of the "
            f"{teachers} teachers and one column for each of the {labels} labels"
        )
    if array.dtype == np.bool_:
        array = array.view(np.uint8)  # a truth value from elsewhere may be any byte
    if array.dtype.kind not in "iuf":
        raise InvalidParameter(
            f"votes must be truth values or numbers; found an array of {array.dtype}"
        )
    return np.asarray(array != 0, dtype=np.bool_)


def as_counts(counts: Any, teachers: int, labels: int) -> Counts:
    """Votes per label, kept within what so many teachers can give."""
    array = np.asarray(counts)
    if array.shape != (labels,):
        raise InvalidParameter(
            f"counts have the shape {array.shape}; they must have one entry for each of the "
            f"{labels} labels"
        )
    if array.dtype.kind not in "iub":
        raise InvalidParameter(f"counts must be whole numbers; found an array of {array.dtype}")
    # Out of range is the data's affair: it is cut off, never reported. Cutting moves no count
    # by more than it moved before.
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(teachers))
    return np.clip(array.astype(np.int64), 0, teachers)


def count_votes(ballots: Ballots | NDArray[Any]) -> Counts:
    """How many teachers vote for each label.

    Blocks of 255 rows are added up in bytes, which is what makes a thousand teachers cheap.
    """
    rows = np.asarray(ballots)
    truth = rows.view(np.uint8) if rows.dtype == np.bool_ else rows
    flags = np.ascontiguousarray(truth != 0).view(np.uint8)
    total = np.zeros(flags.shape[1], dtype=np.int64)
    for start in range(0, len(flags), _BLOCK):
        total += np.add.reduce(flags[start : start + _BLOCK], axis=0, dtype=np.uint8)
    return total


def cut_ballots(ballots: Ballots | NDArray[Any], max_votes: int) -> Ballots:
    """Each ballot's first ``max_votes`` votes in the order of the labels.

    What is cut depends on that ballot alone. A teacher that would rather keep its surest labels
    cuts its own ballot before it sends it (see ``surest``).
    """
    rows = np.asarray(ballots)
    flags = rows if rows.dtype == np.bool_ else rows != 0
    return flags & (np.cumsum(flags, axis=1, dtype=np.int32) <= max_votes)


def surest(scores: NDArray[Any], ballots: Ballots, max_votes: int) -> Ballots:
    """Each ballot cut down to the ``max_votes`` of its votes that the teacher is surest of.

    >>> surest(np.array([[0.6, 0.9, 0.8]]), np.array([[True, True, True]]), 2).tolist()
    [[False, True, True]]
    """
    marked = np.where(ballots, scores, -np.inf)
    order = np.argsort(-marked, axis=1, kind="stable")
    kept = np.zeros_like(ballots)
    np.put_along_axis(kept, order[:, :max_votes], True, axis=1)
    return kept & ballots
