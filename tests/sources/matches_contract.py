"""What every engine must agree on about comparisons; each engine's tests derive from it."""

import hashlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from topsecret.sources import matches
from topsecret.sources.matches import Matches, MatchQuery, read_matches
from topsecret.sources.session import Engine

Vote = tuple[Any, Any, Any, Any]
"""Voter, winner, loser, and what the column of ties says."""
SALT = bytes(range(16))
ITEMS = ["ä", "a", "A", "10", "9", "é", "e\u0301", "😀", "ß", " a"]


def votes(voter: str, count: int, seed: int) -> list[Vote]:
    """Random votes on a schedule that the voter's name fixes; ``seed`` decides who won."""
    schedule, outcome = np.random.default_rng(len(voter)), np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        pair = schedule.choice(len(ITEMS), 2, replace=False)
        one, other = outcome.permutation(pair)
        tie = ["no", "Draw ", None][outcome.integers(3)]
        rows.append((voter, ITEMS[one], ITEMS[other], tie))
    return rows


def by_hand(rows: Iterable[Vote], cap: int | None) -> Counter[tuple[str, str, int]]:
    """(first, second, half wins of the first) counted in plain Python, as documented."""
    persons: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for voter, winner, loser, tie in rows:
        if None in (voter, winner, loser) or winner == loser:
            continue
        tied = (tie or "").strip().lower() in matches.TIE_WORDS
        pair = (min(winner, loser), max(winner, loser))
        persons[voter][pair].append(1 if tied else 2 * (winner < loser))
    counts: Counter[tuple[str, str, int]] = Counter()
    for voter, pairs in persons.items():
        slots = [
            (_key(voter, *pair, str(number)), *pair, number, halves)
            for pair, outcomes in pairs.items()
            for number, halves in enumerate(sorted(outcomes), start=1)
        ]
        for _, first, second, _, halves in sorted(slots)[:cap]:
            counts[first, second, halves] += 1
    return counts


def _key(*parts: str) -> str:
    message = f"{SALT.hex()}:match:" + "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.md5(message.encode()).hexdigest()


def counted(read: Matches) -> Counter[tuple[str, str, int]]:
    found: Counter[tuple[str, str, int]] = Counter()
    rows = zip(read.winners, read.losers, read.ties, read.counts, strict=True)
    for winner, loser, tie, times in rows:
        pair = (read.items[min(winner, loser)], read.items[max(winner, loser)])
        found[(*pair, 1 if tie else 2 * int(winner < loser))] += int(times)
    return found


def schedule_of(read: Matches) -> Counter[tuple[str, str]]:
    pairs: Counter[tuple[str, str]] = Counter()
    for (first, second, _), times in counted(read).items():
        pairs[first, second] += times
    return pairs


def wins_of(read: Matches) -> dict[str, float]:
    totals = dict.fromkeys(read.items, 0.0)
    for (first, second, halves), times in counted(read).items():
        totals[first] += halves / 2 * times
        totals[second] += (1 - halves / 2) * times
    return totals


class MatchContract(ABC):
    """``engine(rows)`` loads (voter, winner, loser, tie) as text."""

    @abstractmethod
    def engine(self, rows: Sequence[Vote]) -> Engine: ...

    def read(self, rows: Sequence[Vote], cap: int | None = 5) -> Matches:
        person = None if cap is None else "voter"
        return read_matches(
            self.engine(rows), MatchQuery("winner", "loser", "tie", person, cap, salt=SALT)
        )

    def test_counts_and_the_cap_are_the_documented_ones(self) -> None:
        rows = [row for n in range(1, 12) for row in votes("v" * n, 3 * n, n)]
        rows += [("x", None, "a", None), ("x", "a", None, None), (None, "a", "ä", None)]
        rows += [("x", "a", "a", None)]
        for cap in (2, 7):
            assert counted(self.read(rows, cap)) == by_hand(rows, cap)
        named = [(row[0] or "nobody", *row[1:]) for row in rows]
        assert counted(self.read(rows, None)) == by_hand(named, None)

    def test_a_person_with_a_hundred_votes_moves_the_totals_by_at_most_ten(self) -> None:
        others = [row for n in range(1, 6) for row in votes("v" * n, 9, n)]
        moved = []
        for seed in range(4):
            before = self.read([*others, *votes("busy voter", 100, seed)])
            after = self.read([*others, *votes("busy voter", 100, seed + 50)])
            assert schedule_of(before) == schedule_of(after)  # public, and the same
            first, second = wins_of(before), wins_of(after)
            moved.append(sum(abs(first[item] - second[item]) for item in first))
        assert 0 < max(moved) <= 2 * 5

    def test_a_choice_that_knows_outcomes_is_caught(self, monkeypatch: Any) -> None:
        right = matches._message
        monkeypatch.setattr(
            matches, "_message", lambda salt, names: right(salt, (*names, "halves"))
        )
        with pytest.raises(AssertionError):
            self.test_a_person_with_a_hundred_votes_moves_the_totals_by_at_most_ten()

    def test_nothing_is_an_ordinary_input(self) -> None:
        assert self.read([]).items == []
