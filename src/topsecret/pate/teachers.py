"""Teachers: models trained on disjoint parts of the private rows. They never leave this process.

**Why one record reaches one teacher.** Which teacher a row belongs to is drawn before anything is
looked at: from the row's position, or from a keyed hash of the row's group (a person, say), so that
all rows of a group meet in one teacher and no other group's place depends on them. So is each
teacher's seed: from a common stream (NumPy's, Python's) one teacher's rows would decide which
numbers the next one gets, and what is left of a seeded stream for the student. With the split and
the seeds held fixed, replacing one record (or one group's rows) changes one teacher's training set,
hence one ballot per query. Averaging over them keeps this.

**Failure is data-independent.** What an estimator raises or warns about depends on the rows that
it sees, so both end here: a teacher that cannot be trained, or cannot predict, votes for nothing.
Mistakes in the estimator itself are found first, on public rows with made-up labels (`rehearse`).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topsecret.exact.equal_values import equal_text
from topsecret.noise.bits import BitSource
from topsecret.noise.screening import draw_words
from topsecret.pate.ballots import Ballots, surest
from topsecret.pate.model_seeds import own_randomness, seeded

Rows = NDArray[np.int64]

BLOCK = 256
"""How many public rows the teachers look at before their votes are counted."""


def split(rows: int, teachers: int, bits: BitSource) -> list[Rows]:
    """A random partition of the row numbers into parts whose sizes differ by at most 1."""
    order = np.argsort(draw_words(rows, bits), kind="stable")
    return [np.sort(part) for part in np.array_split(order.astype(np.int64), teachers)]


def split_groups(groups: Sequence[Hashable], teachers: int, bits: BitSource) -> list[Rows]:
    """All rows of a group in one part, which a keyed hash of the group alone names.

    Equal groups of two types are one. Those that no text distinguishes (objects that would show
    their address) are one group together.
    """
    key = bits.take(32)
    parts: list[list[int]] = [[] for _ in range(teachers)]
    for row, group in enumerate(groups):
        known = (equal_text(group) or "").encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(known, digest_size=16, key=key).digest()
        parts[int.from_bytes(digest, "big") % teachers].append(row)
    return [np.array(part, dtype=np.int64) for part in parts]


def rehearse(estimator: Any, features: Any, labels: int) -> None:
    """Train and ask the estimator on public rows with made-up labels; its errors are shown."""
    size = min(features.shape[0], 64)
    made_up = (np.arange(size)[:, None] + np.arange(labels)[None, :]) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(features[:size], made_up).predict(features[:size])


def train(estimator: Any, features: Any, labels: NDArray[Any], seed: int = 0) -> Any | None:
    """The trained teacher, or None when its rows do not allow one; ``seed`` must know no row."""
    with own_randomness(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return seeded(estimator, seed).fit(features, labels)
        except Exception:  # whatever it is, it is about the rows
            return None


def ballots(teacher: Any | None, features: Any, labels: int, max_votes: int | None) -> Ballots:
    """One teacher's votes on some public rows: rows × labels."""
    nothing = np.zeros((features.shape[0], labels), dtype=np.bool_)
    if teacher is None:
        return nothing
    with own_randomness(0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            votes: Ballots = np.asarray(np.asarray(teacher.predict(features)) != 0, np.bool_)
            if votes.shape != nothing.shape:
                return nothing
            if max_votes is None:
                return votes
            return surest(_scores(teacher, features, votes), votes, max_votes)
        except Exception:
            return nothing


def _scores(teacher: Any, features: Any, votes: Ballots) -> NDArray[Any]:
    """How sure a teacher is of each label, where it can say so."""
    for method in ("decision_function", "predict_proba"):
        if hasattr(teacher, method):
            scores = getattr(teacher, method)(features)
            if isinstance(scores, list):  # one array of two columns per label
                scores = np.stack([np.asarray(column)[:, -1] for column in scores], axis=1)
            scores = np.asarray(scores, dtype=np.float64)
            if scores.shape == votes.shape:
                return scores
    return votes.astype(np.float64)


def polls(
    teachers: Sequence[Any | None], features: Any, labels: int, max_votes: int | None
) -> Iterator[Ballots]:
    """For every public row the matrix of teachers × labels, a block of rows in memory at a time."""
    for start in range(0, features.shape[0], BLOCK):
        block = features[start : start + BLOCK]
        votes = np.stack([ballots(teacher, block, labels, max_votes) for teacher in teachers])
        yield from np.moveaxis(votes, 1, 0)
