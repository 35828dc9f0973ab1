"""What every engine must agree on, to the last row: one suite, run by each engine's tests.

A test module derives a class from ``Contract`` and says how rows get into its engine. Every
expected answer is counted here in plain Python, the cap included.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.counts.weights import UNIT, Weights, weighted_sums
from topsecret.sources import CountQuery, Source, domain_of
from topsecret.sources.domains.weighted_labels import weighted_labels
from topsecret.sources.session import Engine, leading_counts_and_persons
from topsecret.sources.source import GroupAssignment

Row = tuple[Any, Any]
SALT = bytes(range(16))
UNICODE = ["ä", "z", "B", "a", "A", "ａ", "😀", "10", "9", "é", "e\u0301", " a", "a ", "ß", "SS"]

text = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=4
).filter(lambda value: value.strip() != "")
people = st.sampled_from(["ann", "bob", "cy", "Bob", "dé", "e", "1", "01"])
tables = st.lists(st.tuples(people, text), max_size=25)
RELAXED = settings(max_examples=3)


def choice_key(salt: bytes, person: object, item: object) -> str:
    """The hash that decides which items a person keeps, as the documentation states it."""
    parts = item if isinstance(item, tuple) else (item,)
    message = salt.hex() + "".join(f"{len(str(part))}:{part}" for part in (person, *parts))
    return hashlib.md5(message.encode()).hexdigest()


def by_hand(rows: Sequence[Row], max_items: int | None = None, salt: bytes = SALT) -> Counter[Any]:
    """Distinct persons per item, in plain Python."""
    items: dict[Any, set[Any]] = defaultdict(set)
    for person, item in rows:
        if person is not None and item is not None:
            items[person].add(item)
    counts: Counter[Any] = Counter()
    for person, mine in items.items():
        ordered = sorted(mine, key=lambda item: (choice_key(salt, person, item), item))
        counts.update(ordered if max_items is None else ordered[:max_items])
    return counts


def holdings(rows: Sequence[Row]) -> dict[Any, set[Any]]:
    """Everybody's items."""
    items: dict[Any, set[Any]] = defaultdict(set)
    for person, item in rows:
        if person is not None and item is not None:
            items[person].add(item)
    return items


def ranked(counts: Counter[Any], rows: int) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:rows]


class Contract(ABC):
    """``source(rows)`` loads rows of (user, place) as text and returns the source over them."""

    @abstractmethod
    def source(self, rows: Sequence[Row]) -> Source: ...

    @abstractmethod
    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        """The same with two columns of integers."""

    def query(self, rows: int = 100, **more: Any) -> CountQuery:
        return CountQuery(item="place", person="user", rows=rows, salt=SALT, **more)

    def test_is_a_source(self) -> None:
        assert isinstance(self.source([]), Source)

    def test_a_person_counts_once_per_item(self) -> None:
        source = self.source([("ann", "park"), ("ann", "park"), ("ann", "pier"), ("bob", "park")])
        assert source.leading_counts(self.query()) == [("park", 2), ("pier", 1)]

    def test_rows_without_person_or_item_are_dropped(self) -> None:
        source = self.source([(None, "park"), ("ann", None), (None, None), ("bob", "pier")])
        assert source.leading_counts(self.query()) == [("pier", 1)]

    def test_no_rows_is_an_ordinary_input(self) -> None:
        assert self.source([]).leading_counts(self.query()) == []

    def test_ties_are_broken_by_code_point(self) -> None:
        source = self.source([("ann", place) for place in UNICODE])
        assert [item for item, _ in source.leading_counts(self.query())] == sorted(UNICODE)

    def test_persons_are_told_apart_by_code_point(self) -> None:
        source = self.source([(person, "park") for person in UNICODE])
        assert source.leading_counts(self.query()) == [("park", len(UNICODE))]

    def test_only_the_asked_rows_come_back(self) -> None:
        source = self.source([(f"u{n}", f"p{n % 7}") for n in range(49)])
        assert source.leading_counts(self.query(rows=3)) == [("p0", 7), ("p1", 7), ("p2", 7)]

    def test_quotes_and_newlines_inside_values(self) -> None:
        place = 'the "Anchor",\nby\tthe pier\'s end\\ %s :x ${y}'
        source = self.source([("ann", place), ("bob", "else")])
        assert source.leading_counts(self.query(where=[("place", "=", place)])) == [(place, 1)]

    def test_integers_are_ordered_by_value(self) -> None:
        source = self.numbers([(1, 9), (1, 10), (1, -3), (2, 10)])
        assert source.leading_counts(self.query()) == [(10, 2), (-3, 1), (9, 1)]

    @pytest.mark.parametrize("cap", [1, 2, 3])
    def test_the_cap_is_the_documented_one(self, cap: int) -> None:
        rows = [(f"person {n}", UNICODE[(n * m) % 15]) for n in range(40) for m in range(1, 8)]
        source = self.source(rows)
        assert source.leading_counts(self.query(max_items=cap)) == ranked(by_hand(rows, cap), 100)

    def test_the_cap_on_integers(self) -> None:
        rows = [(n, (n * m) % 11 - 5) for n in range(30) for m in range(1, 8)]
        source = self.numbers(rows)
        assert source.leading_counts(self.query(max_items=2)) == ranked(by_hand(rows, 2), 100)

    @pytest.mark.parametrize("most", [2, 100])
    def test_weighted_sums_are_those_of_the_reference(self, most: int) -> None:
        rows = [(f"person {n}", UNICODE[(n * m) % 15]) for n in range(40) for m in range(1, 8)]
        rows += [("one", "ä"), ("two", "z"), ("two", "ä"), (None, "z"), ("two", None)]
        found = self.weighted(self.source(rows), Weights.share(most))
        sums = weighted_sums(holdings(rows), Weights.share(most), SALT)
        assert found == {item: (total, by_hand(rows)[item]) for item, total in sums.items()}

    def test_weighted_sums_of_a_cap_count_after_the_cut(self) -> None:
        rows = [(n, (n * m) % 11 - 5) for n in range(30) for m in range(1, 8)]
        found = self.weighted(self.numbers(rows), Weights.cap(2), max_items=2)
        capped = by_hand(rows, 2)
        assert found == {item: (UNIT * n, n) for item, n in capped.items()}

    def test_weighted_sums_of_a_public_domain(self) -> None:
        rows = [("ann", "park"), ("ann", "pier"), ("bob", "park"), ("ann", "secret")]
        domain = domain_of(["park", "pier", "mill"])
        found = self.weighted(self.source(rows), Weights("share", 4, 1), domain=domain)
        assert found == {"park": (724 + 1024, 2), "pier": (724, 1), "mill": (0, 0)}

    def test_no_rows_have_no_sums(self) -> None:
        assert self.weighted(self.source([]), Weights.share()) == {}

    def weighted(self, source: Source, weights: Weights, **more: Any) -> dict[Any, tuple[int, int]]:
        """Every label by its sum and place, as a mechanism fetches them, with its persons."""
        assert isinstance(source, Engine)
        with weighted_labels(source, [self.query(**more)], weights.table) as [labels]:
            groups = labels.counts()
            wanted = [(total, place) for total, number in groups for place in range(number)]
            items = labels.items_at(wanted)
            persons = labels.persons_of(items)
            leading = dict(labels.leading(1000))
            assert leading == {i: n for i, n in zip(items, persons, strict=True) if n}
        totals = [total for total, _ in wanted]
        return {
            item: (total, number)
            for item, total, number in zip(items, totals, persons, strict=True)
        }

    def test_another_salt_is_another_choice(self) -> None:
        rows = [("ann", f"place {n}") for n in range(100)]
        source = self.source(rows)
        salts = [bytes([n] * 16) for n in range(3)]
        kept = {
            tuple(
                source.leading_counts(CountQuery("place", "user", rows=9, max_items=5, salt=salt))
            )
            for salt in salts
        }
        assert len(kept) == 3
        assert all(len(chosen) == 5 for chosen in kept)

    @pytest.mark.parametrize("cap", [None, 1])
    def test_groups_tell_their_persons(self, cap: int | None) -> None:
        """Groups by the item's own column: the one item of a list has all its persons."""
        names = ("park", "pier", "zoo")
        rows = [(f"u{n}", name) for n in range(12) for name in names[: 1 + n % 3]] * 2
        engine = self.source([*rows, (None, "zoo"), ("lost", "none")])
        assert isinstance(engine, Engine)
        overlapping = [self.query(max_items=cap, where=[("place", "=", name)]) for name in names]
        lists, persons = leading_counts_and_persons(engine, overlapping)
        assert [dict(found) for found in lists] == [{"park": 12}, {"pier": 8}, {"zoo": 4}]
        assert persons == [12, 8, 4]
        homes = [GroupAssignment("place", names, name) for name in names]
        apart = [self.query(max_items=cap, home=home) for home in homes]
        lists, persons = leading_counts_and_persons(engine, apart)
        assert persons == [dict(one).get(name, 0) for one, name in zip(lists, names, strict=True)]
        assert sum(persons) == 12

    @pytest.mark.parametrize("cap", [None, 1, 3])
    @RELAXED
    @given(rows=tables)
    def test_agrees_with_counting_by_hand(self, cap: int | None, rows: list[Row]) -> None:
        found = self.source(rows).leading_counts(self.query(max_items=cap, rows=10))
        assert found == ranked(by_hand(rows, cap), 10)

    @pytest.mark.parametrize("cap", [None, 1, 3])
    @RELAXED
    @given(rows=tables, new=st.lists(text, min_size=1, max_size=8), place=st.integers(0, 25))
    def test_neighbours_stay_neighbours(
        self, cap: int | None, rows: list[Row], new: list[str], place: int
    ) -> None:
        """One person more: no count falls, none rises by more than 1, at most cap of them rise."""
        query = self.query(max_items=cap)
        before = dict(self.source(rows).leading_counts(query))
        more = [*rows[:place], *(("new person", item) for item in new), *rows[place:]]
        after = dict(self.source(more).leading_counts(query))
        moved = {item: after.get(item, 0) - before.get(item, 0) for item in {*before, *after}}
        assert set(moved.values()) <= {0, 1}
        assert sum(moved.values()) == min(len(set(new)), cap or len(new))

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ([("place", "=", "park")], ["park"]),
            ([("place", "!=", "park")], ["Park", "pier", "zoo"]),
            ([("place", "in", ["zoo", "pier", "none"])], ["pier", "zoo"]),
            ([("place", "not in", ["zoo", "pier"])], ["Park", "park"]),
            ([("place", "<", "a")], ["Park"]),
            ([("place", ">=", "pier"), ("user", "=", "bob")], ["zoo"]),
            ([("user", "=", None)], []),
            ([("user", "!=", None)], ["Park", "park", "pier", "zoo"]),
            ("lower(place) = 'park'", ["Park", "park"]),
            ("place LIKE 'p%' AND NOT place IN ('park')", ["pier"]),
            ("length(place) = 3 OR user = 'cy'", ["Park", "zoo"]),
        ],
    )
    def test_filters(self, where: Any, expected: list[str]) -> None:
        rows = [("ann", "park"), ("ann", "pier"), ("bob", "zoo"), ("cy", "Park"), (None, "zoo")]
        found = self.source(rows).leading_counts(self.query(where=where))
        assert [item for item, _ in found] == expected
