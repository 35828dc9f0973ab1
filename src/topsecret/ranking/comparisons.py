"""Comparisons: who met whom how often is public; who won is secret.

Neighbours differ in the *outcome of one comparison*. So the items, the pairs that met and how often
they met, the **schedule**, are the same for all neighbours and count as public. A table of results
shows its schedule too: whoever makes comparisons out of one declares that schedule public by saying
``schedule="public"``, and the receipt repeats it. Where taking part is itself the secret, this is
the wrong tool.

A tie is half a win for each side. Leaving ties out would make the schedule depend on outcomes.

>>> games = Comparisons.from_rows(["a", "a", "b"], ["b", "c", "c"], schedule="public")
>>> games
<Comparisons: secret outcomes of 3 comparisons between 3 items>
>>> games.most_games, games.fewest_meetings, games.parts
(2, 1, 1)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter, MissingExtra
from topsecret.exact.ordering import canonical_key

try:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components
except ImportError:
    raise MissingExtra(
        "topsecret.ranking needs SciPy; install it with: pip install '.[ranking]' in the checkout"
    ) from None

Schedule = Literal["public"]
_MOST = 2**50  # sums of half wins stay exact in float64


class Comparisons:
    """The outcomes of comparisons between public items on a public schedule. Secret.

    Make one with :meth:`from_rows`, :meth:`from_codes` or :meth:`from_matrix`.

    Parameters: ``items``: what was compared, each once; ``half_wins``: a matrix of how often one
    beat the other, a win as 2 and a tie as 1; ``per_person``: to how many each person's
    comparisons were cut where the rows were read; ``winners``: who won each comparison;
    ``losers``: who lost it; ``ties``: whether nobody won, for each row; as a matrix how often;
    ``counts``: for each row, how many comparisons it stands for; ``wins``: a matrix, dense or
    sparse, whose entry (i, j) says how often i beat j; ``schedule``: your word that it is public
    who met whom.
    """

    def __init__(self, items: Sequence[Hashable], half_wins: Any, per_person: int = 1) -> None:
        self._items = tuple(items)
        self.per_person = per_person
        """Public: how many comparisons one person decided, at most."""
        self._half_wins = half_wins
        """int64: entry (i, j) is twice the wins of i over j plus their ties."""

    @classmethod
    def from_rows(
        cls,
        winners: Iterable[Hashable],
        losers: Iterable[Hashable],
        ties: Iterable[bool] | None = None,
        *,
        schedule: Schedule,
    ) -> Comparisons:
        """From one row per comparison: who won, who lost, and whether it was a tie after all.

        A row in which an item meets itself says nothing and is left out.
        """
        winners, losers = list(winners), list(losers)
        items = sorted(set(winners) | set(losers), key=canonical_key)
        places = {item: place for place, item in enumerate(items)}
        codes = [
            np.array([places[name] for name in names], np.int64) for names in (winners, losers)
        ]
        return cls.from_codes(*codes, items=items, ties=ties, schedule=schedule)

    @classmethod
    def from_codes(
        cls,
        winners: ArrayLike,
        losers: ArrayLike,
        *,
        items: Sequence[Hashable],
        ties: Iterable[bool] | None = None,
        counts: ArrayLike | None = None,
        per_person: int = 1,
        schedule: Schedule,
    ) -> Comparisons:
        """The same with places in ``items`` for names: ten million rows take seconds.

        ``sources/matches.py`` reads such rows and cuts those of a person.
        """
        _declared(schedule)
        won, lost = np.asarray(winners, dtype=np.int64), np.asarray(losers, dtype=np.int64)
        if won.shape != lost.shape or won.ndim != 1:
            raise InvalidParameter(
                f"winners and losers have the shapes {won.shape} and {lost.shape}; "
                "they must be two rows of one length"
            )
        tied = np.zeros(len(won), np.bool_)
        if ties is not None:
            tied = np.asarray(list(ties) if not isinstance(ties, np.ndarray) else ties) != 0
        repeats = np.ones(len(won), np.int64)
        if counts is not None:
            repeats = np.asarray(counts, dtype=np.int64)
        if tied.shape != won.shape or repeats.shape != won.shape:
            raise InvalidParameter("ties and counts must have one entry for each comparison")
        size = len(items)
        apart = won != lost
        both = apart & tied
        rows = np.concatenate([won[apart], lost[both]])
        columns = np.concatenate([lost[apart], won[both]])
        values = np.concatenate([(np.where(tied, 1, 2) * repeats)[apart], repeats[both]])
        if len(rows) and (
            min(rows.min(), columns.min()) < 0 or max(rows.max(), columns.max()) >= size
        ):
            raise InvalidParameter(f"places must lie between 0 and {size - 1}, one for each item")
        # Adding the loser's 0 keeps the stored pattern that of the schedule, not of the outcomes.
        rows, columns, values = (
            np.concatenate([rows, columns]),
            np.concatenate([columns, rows]),
            np.concatenate([values, np.zeros_like(values)]),
        )
        matrix = sparse.coo_array((values, (rows, columns)), shape=(size, size)).tocsr()
        return cls(items, _checked(matrix), per_person)

    @classmethod
    def from_matrix(
        cls,
        wins: Any,
        *,
        items: Sequence[Hashable] | None = None,
        ties: Any = None,
        schedule: Schedule,
    ) -> Comparisons:
        """From a matrix of how often i beat j, and a symmetric one of how often they tied."""
        _declared(schedule)
        matrix = _whole_matrix(wins, "wins")
        if items is None:
            items = range(matrix.shape[0])
        if len(items) != matrix.shape[0]:
            raise InvalidParameter(
                f"items names {len(items)} items for a matrix of {matrix.shape[0]}; name each once"
            )
        half_wins = 2 * matrix
        if ties is not None:
            tied = _whole_matrix(ties, "ties")
            if tied.shape != matrix.shape or (tied != tied.T).nnz:
                raise InvalidParameter("ties must be symmetric and of the shape of wins")
            half_wins = half_wins + tied
        pattern = sparse.coo_array(half_wins + half_wins.T)
        values = sparse.coo_array(half_wins)
        apart, met = values.row != values.col, pattern.row != pattern.col
        # The zeros keep the stored pattern that of the schedule, not of the outcomes.
        entries = np.concatenate([values.data[apart], np.zeros_like(pattern.data[met])])
        rows = np.concatenate([values.row[apart], pattern.row[met]])
        columns = np.concatenate([values.col[apart], pattern.col[met]])
        whole = sparse.coo_array((entries, (rows, columns)), shape=matrix.shape).tocsr()
        return cls(items, _checked(whole))

    @property
    def items(self) -> tuple[Hashable, ...]:
        """The items, in their public order."""
        return self._items

    @cached_property
    def games(self) -> Any:
        """Public: how often each pair met, as a symmetric sparse matrix."""
        both = sparse.csr_array(self._half_wins + self._half_wins.T)
        both.data //= 2
        both.eliminate_zeros()
        return both

    @cached_property
    def most_games(self) -> int:
        """Public: the number of comparisons of the item that took part most often, at least 1."""
        return max(1, int(self.games.sum(axis=1).max(initial=0)))

    @cached_property
    def fewest_meetings(self) -> int:
        """Public: how often the pair that met least did; 0 when some pair never met."""
        size = len(self._items)
        if size < 2 or self.games.nnz < size * (size - 1):
            return 0
        return int(self.games.data.min())

    @cached_property
    def most_opponents(self) -> int:
        """Public: how many others the item with the most opponents met."""
        return int(np.diff(self.games.indptr).max(initial=0))

    @cached_property
    def parts(self) -> int:
        """Public: into how many parts that never met the schedule falls."""
        return int(connected_components(self.games, directed=False)[0])

    @cached_property
    def comparisons(self) -> int:
        """Public: how many comparisons there are."""
        return int(self.games.sum()) // 2

    @cached_property
    def wins(self) -> Any:
        """Entry (i, j): the wins of i over j, ties as halves, exact in float64. Secret."""
        return sparse.csr_array(self._half_wins.astype(np.float64) / 2)

    def half_wins(self) -> NDArray[np.int64]:
        """Twice the wins of each item, ties once, in the items' order. Secret."""
        return np.asarray(self._half_wins.sum(axis=1), dtype=np.int64).ravel()

    def half_win_counts(self) -> Histogram:
        """The same by name over the public items. Secret."""
        named = dict(zip(self._items, self.half_wins().tolist(), strict=True))
        return Histogram.of(named, domain=self._items)

    def described(self) -> str:
        """The public schedule in words."""
        size = len(self._items)
        text = f"{size:,} items, {self.comparisons:,} comparisons"
        pairs = size * (size - 1) // 2
        met = int(self.games.nnz) // 2
        if met < pairs:
            text += f", {met:,} of {pairs:,} pairs met"
        else:
            text += f", every pair met at least {self.fewest_meetings:,} times"
        if self.parts > 1:
            text += (
                f"; the schedule falls into {self.parts:,} parts that never met, "
                "and places across parts mean little"
            )
        return text

    def __repr__(self) -> str:
        return (
            f"<Comparisons: secret outcomes of {self.comparisons:,} comparisons "
            f"between {len(self._items):,} items>"
        )


def _declared(schedule: str) -> None:
    if schedule != "public":
        raise InvalidParameter(
            f"schedule={schedule!r} must be 'public': who met whom, and how often, is not "
            "protected; only who won is"
        )


def _whole_matrix(given: Any, name: str) -> Any:
    matrix = given if sparse.issparse(given) else np.asarray(given)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidParameter(f"{name} has the shape {matrix.shape}; it must be square")
    if matrix.dtype.kind not in "iub":
        raise InvalidParameter(f"{name} must hold whole numbers; found {matrix.dtype}")
    return sparse.csr_array(matrix.astype(np.int64))


def _checked(half_wins: Any) -> Any:
    """Outcomes that no comparison can have are cut off, never reported."""
    np.clip(half_wins.data, 0, _MOST, out=half_wins.data)
    half_wins.sum_duplicates()
    return half_wins
