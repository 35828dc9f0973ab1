"""What engines must agree on when items are ranked by rows or sums, hostile values included."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from typing import Any

import pytest
from contract import SALT, choice_key, ranked

from topsecret.counts.clip import Clip
from topsecret.sources import CountQuery, GroupAssignment, Source, Sum, domain_of, measure_of
from topsecret.sources.domains.counted_domain import counted_domains
from topsecret.sources.domains.rises import SHIFT, counted_rises, leading_rises
from topsecret.sources.domains.scores_by_bound import scores_by_bound
from topsecret.sources.domains.weighted_labels import weighted_labels
from topsecret.sources.measures import Measure
from topsecret.sources.session import Engine, leading_counts_of
from topsecret.sources.sql.bounded_totals import shrinking

Row = tuple[Any, Any, Any]

ROWS: list[Row] = [
    *[("ann", "park", 3)] * 4,
    ("ann", "pier", 8),
    ("bob", "park", 2),
    ("bob", "park", -7),
    ("bob", "pier", None),
    ("bob", "zoo", -7),
    ("cy", "zoo", 0),
    ("cy", "pier", 1),
    (None, "park", 5),
    ("cy", None, 5),
    ("Ann", "park", 1),
]
FRACTIONS = (2.675, 0.285, 0.005, 1e-9, 12.3, 4.999, 4.995, -0.01, 0.29)


def units(value: Any, measure: Measure) -> int:
    """What a row adds, by the documented rule."""
    if value is None or not Decimal(value).is_finite() or not value > 0:
        return 0
    bound = Decimal(measure.bound)
    if isinstance(value, Decimal):
        if value >= bound:
            return measure.most
        short = value.quantize(Decimal("1e-10"), ROUND_HALF_UP)
        return math.floor(short * measure.per_unit + Decimal("0.5"))
    if value >= float(bound):
        return measure.most
    return math.floor(value * measure.per_unit + 0.5)


def by_hand(rows: Sequence[Row], measure: Measure, cap: int | None = None) -> Counter[Any]:
    """Clipped rows or sums per item, in plain Python."""
    sums: dict[Any, Counter[Any]] = defaultdict(Counter)
    for person, item, value in rows:
        if person is not None and item is not None:
            sums[person][item] += 1 if measure.column is None else units(value, measure)
    scores: Counter[Any] = Counter()
    for person, mine in sums.items():
        kept = sorted((i for i, n in mine.items() if n), key=lambda i: choice_key(SALT, person, i))
        for item in kept[:cap]:
            scores[item] += min(mine[item], measure.most)
    return scores


def totals_by_hand(rows: Sequence[Row], measure: Measure, cap: int) -> Counter[Any]:
    """Scores of which one person's part has a bounded length, in plain Python."""
    alone: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        alone[row[0]].append(row)
    scores: Counter[Any] = Counter()
    for mine in alone.values():
        part = by_hand(mine, measure, cap)
        scores.update(scaled(part, measure.total, cap * measure.most**2))
    return scores


def scaled(part: Counter[Any], total: int, largest: int) -> Counter[Any]:
    """One person's part, scaled down by the documented table."""
    squares, share = sum(n * n for n in part.values()), 2**20
    for most, numerator in shrinking(total, largest):
        if squares > total**2 and squares <= most:
            share = numerator
            break
    return Counter({item: n * share >> 20 for item, n in part.items() if n * share >> 20})


def parts_by_hand(rows: Sequence[Row], measure: Measure, clip: Clip) -> Counter[Any]:
    """Sums of parts in their own units, each person's of a bounded length, in plain Python."""
    sums: Counter[Any] = Counter()
    for person in {row[0] for row in rows}:
        kept = by_hand([row for row in rows if row[0] == person], measure, clip.items)
        part = Counter({item: clip.part(amount) for item, amount in kept.items()})
        sums.update(scaled(part, clip.total, clip.items * clip.most**2))
    return sums


class Measured(ABC):
    """``priced(rows, kind)`` loads rows of (user, place, price), the price of a declared kind."""

    kinds: tuple[str, ...] = ("integer", "decimal", "float")

    @abstractmethod
    def priced(self, rows: Sequence[Row], kind: str) -> Source: ...

    def query(self, measure: Measure | None, **more: Any) -> CountQuery:
        return CountQuery("place", "user", 50, measure=measure, salt=SALT, **more)

    @pytest.mark.parametrize("most", [1, 3, 9])
    @pytest.mark.parametrize("cap", [None, 1])
    def test_rows_are_clipped_person_by_person(self, most: int, cap: int | None) -> None:
        measure = measure_of("rows", most)
        assert measure is not None
        found = self.priced(ROWS, "integer").leading_counts(self.query(measure, max_items=cap))
        assert found == ranked(by_hand(ROWS, measure, cap), 50)

    @pytest.mark.parametrize(("unit", "most"), [(1, 5), ("0.1", "2.5")])
    def test_sums_are_clipped_person_by_person(self, unit: object, most: object) -> None:
        measure = measure_of(Sum("price", unit), most)  # type: ignore[arg-type]
        assert measure is not None
        for kind in self.kinds:
            source = self.priced(ROWS, kind)
            for cap in (None, 1):
                found = source.leading_counts(self.query(measure, max_items=cap))
                assert found == ranked(by_hand(ROWS, measure, cap), 50)

    def test_scores_at_several_bounds_are_those_at_each(self) -> None:
        """One scan for all bounds: ranked, and beyond each, as each bound alone would have it."""
        listed = measure_of(Sum("price"), [1, 2, 5])
        assert listed is not None
        source = self.priced(ROWS, "integer")
        assert isinstance(source, Engine)
        for domain, cap in ((None, None), (None, 1), (domain_of(["park", "pier", "mill"]), 1)):
            query = self.query(listed, max_items=cap, domain=domain)
            rows = [row for row in ROWS if domain is None or row[1] != "zoo"]
            with scores_by_bound(source, [query]) as [scores]:
                alone = [by_hand(rows, listed.at(bound), cap) for bound in listed.bounds]
                for place, expected in enumerate(alone):
                    assert scores.at(place).leading(9) == ranked(expected, 9)
                for rank in (1, 2, 9):
                    added = [high - low for low, high in pairwise(alone)]  # keeps what is positive
                    most = [sorted(one.values(), reverse=True) for one in added]
                    beyond = [one[rank - 1] if len(one) >= rank else 0 for one in most]
                    assert scores.beyond(rank) == beyond

    def test_all_that_a_person_adds_is_bounded(self) -> None:
        """One person more moves each score by c, and all of them together by C, at most."""
        measure = measure_of(Sum("price"), 5, 8)
        assert measure is not None
        for kind in self.kinds:
            few = [("ann", "park", 1), ("bob", "pier", 9), ("bob", "park", 3)]
            values = [*self.hostile(kind), 4, 9, 2]
            eve = [("eve", f"place {n}", value) for n, value in enumerate(values)]
            found: list[Counter[Any]] = []
            for rows in (few, [*few, *eve, ("eve", "park", 7)]):
                source = self.priced(rows, kind)
                assert isinstance(source, Engine)
                query = self.query(measure, max_items=6)
                with counted_domains(source, [query]) as [scores]:
                    found.append(Counter(dict(scores.leading(50))))
                    assert sum(n for _, n in scores.counts()) == len(found[-1])
                if not set(rows) - set(few):
                    assert found[-1] == totals_by_hand(rows, measure, 6)
            moved = found[1] - found[0]
            assert not found[0] - found[1]
            assert all(0 < move <= 5 for move in moved.values())
            assert 6 * 6 < sum(move**2 for move in moved.values()) <= 8 * 8

    def test_parts_are_bounded_beside_the_scores(self) -> None:
        """One person more moves each score by c, and the parts together by their length, at most;
        bounds of a few units and of far more than a part has."""
        few = [("ann", "park", 1), ("bob", "pier", 9), ("bob", "park", 3), *ROWS]
        for kind in self.kinds:
            values = [*self.hostile(kind), 4, 9, 2]
            eve = [("eve", f"place {n}", value) for n, value in enumerate(values)]
            for unit, cap in self.units_and_caps(kind):
                measure = measure_of(Sum("price", unit), 5)
                assert measure is not None
                clip = Clip(measure.most, 3, 2)
                found: list[tuple[Counter[Any], Counter[Any]]] = []
                for rows in (few, [*few, *eve, ("eve", "park", 7)]):
                    source = self.priced(rows, kind)
                    assert isinstance(source, Engine)
                    query = self.query(measure, max_items=cap)
                    sums: Counter[Any] = Counter()
                    with weighted_labels(source, [query], clip) as [labels]:
                        scores = Counter(dict(labels.leading(50)))
                        counts = [(total, many) for total, many in labels.counts() if total]
                        places = [(total, place) for total, many in counts for place in range(many)]
                        for (total, _), item in zip(places, labels.items_at(places), strict=True):
                            sums[item] = total
                    kept = [(person, item, self.kept(value)) for person, item, value in rows]
                    assert scores == by_hand(kept, measure, cap)
                    assert sums == parts_by_hand(kept, measure, clip)
                    found.append((scores, sums))
                (scores, sums), (more_scores, more_sums) = found
                assert not (scores - more_scores) + (sums - more_sums)
                assert max((more_scores - scores).values()) == measure.most
                squares = sum(move**2 for move in (more_sums - sums).values())
                assert 0.7 * clip.total**2 < squares <= clip.total**2

    def test_totals_are_scaled_by_the_documented_rule(self) -> None:
        measure = measure_of("rows", 4, 5)
        assert measure is not None
        rows = [("ann", f"p{n}", 1) for n in range(9) for _ in range(n + 1)] + ROWS
        source = self.priced(rows, "integer")
        assert isinstance(source, Engine)
        for cap, domain in ((100, None), (3, None), (100, ["p1", "p7", "park", "mill"])):
            listed = None if domain is None else domain_of(domain)
            inside = [row for row in rows if domain is None or row[1] in domain]
            query = self.query(measure, max_items=cap, domain=listed)
            with counted_domains(source, [query]) as [scores]:
                expected = totals_by_hand(inside, measure, cap)
                assert scores.leading(50) == ranked(expected, 50)

    def test_fractions_are_rounded_row_by_row(self) -> None:
        measure = measure_of(Sum("price", unit=0.01), 5)
        assert measure is not None
        for kind in set(self.kinds) - {"integer"}:
            number = float if kind == "float" else lambda n: Decimal(str(n))
            rows = [("ann", f"p{n}", number(v)) for n, v in enumerate(FRACTIONS)]
            rows += [("bob", "all", number(v)) for v in FRACTIONS[:4]]
            found = self.priced(rows, kind).leading_counts(self.query(measure))
            assert found == ranked(by_hand(rows, measure), 50)

    def test_hostile_values_move_a_score_by_the_bound_at_most(self) -> None:
        """Largest and smallest of each kind, infinities and what is no number, on every engine by
        one rule."""
        for kind in self.kinds:
            values = self.hostile(kind)
            few = [("ann", "park", 1), ("bob", "pier", 2)]
            rows = [*few, *(("eve", "park", value) for value in values)]
            rows += [("eve", f"alone {n}", value) for n, value in enumerate(values)]
            for unit, most in ((1, 7), (0.000001, 1000)):
                measure = measure_of(Sum("price", unit), most)
                assert measure is not None
                before = by_hand(few, measure)
                found = self.priced(rows, kind).leading_counts(self.query(measure))
                kept = [(person, item, self.kept(value)) for person, item, value in rows]
                assert found == ranked(by_hand(kept, measure), 50)
                after = Counter(dict(found))
                assert not before - after
                assert max((after - before).values()) == measure.most == after["alone 0"]
                assert after["park"] == before["park"] + measure.most

    def kept(self, value: Any) -> Any:
        """A value as the column holds it: what is no number counts as nothing."""
        return None if isinstance(value, str | bytes) else value

    def units_and_caps(self, kind: str) -> list[tuple[float, int | None]]:
        """A bound of a few units, and one of far more than a part has with a cap beside it."""
        return [(1, None), (0.000001, 4)]

    def hostile(self, kind: str) -> list[Any]:
        if kind == "integer":
            return [2**63 - 1, -(2**63), 2**62, 10**9, 3, None]
        if kind == "decimal":
            return [Decimal(10**27), Decimal(-(10**27)), Decimal("1e-10"), Decimal("999999999.5")]
        return [1.7e308, -1.7e308, 5e-324, math.inf, -math.inf, math.nan, 1e19]

    def test_rises_move_by_one_person_up_or_down_at_most(self) -> None:
        """The persons of two counts, subtracted by the engine; eve is once in each, at most."""
        eve = [("eve", "park", 2)] * 3 + [("eve", "pier", 9), ("eve", "zoo", 2), ("eve", "zoo", 9)]
        domain = domain_of(["park", "pier", "zoo", "mill"])
        later, earlier = self.periods()
        found = []
        for rows in (ROWS, [*ROWS, *eve]):
            source = self.priced(rows, self.kinds[-1])
            assert isinstance(source, Engine)
            queries = [self.query(None, domain=domain, where=where) for where in (later, earlier)]
            by_hand_now = {"mill": 0} | {
                item: len({u for u, i, v in rows if u and i == item and v is not None and v > 2})
                - len({u for u, i, v in rows if u and i == item and v is not None and v <= 2})
                for item in ("park", "pier", "zoo")
            }
            with counted_rises(source, queries) as [rises]:
                found.append({item: count - SHIFT for item, count in rises.leading(9)})
                assert sum(items for _, items in rises.counts()) == 4
            assert found[-1] == by_hand_now
            # Without a domain: what leads in either period, with its persons in both.
            queries = [self.query(None, where=where) for where in (later, earlier)]
            with leading_rises(source, queries) as (after, before):
                own = [Counter({item: n for item, n, _ in rows}) for rows in (after, before)]
                assert [(i, n) for i, n, _ in after] == ranked(own[0], 50)
                assert [(i, n) for i, n, _ in before] == ranked(own[1], 50)
                assert all(other == own[1][item] for item, _, other in after)
                assert all(other == own[0][item] for item, _, other in before)
                assert {i: own[0][i] - own[1][i] for i in by_hand_now} == by_hand_now
        moved = {item: found[1][item] - rise for item, rise in found[0].items()}
        assert moved == {"park": -1, "pier": 1, "zoo": 0, "mill": 0}

    def periods(self) -> tuple[Any, Any]:
        """Rows above 2, and the others."""
        return [("price", ">", 2)], [("price", "<=", 2)]

    def test_a_public_domain_and_groups_are_measured_the_same(self) -> None:
        measure = measure_of(Sum("price"), 5)
        assert measure is not None
        source = self.priced(ROWS, "integer")
        assert isinstance(source, Engine)
        domain = domain_of(["park", "pier", "mill"])
        for cap in (None, 1):
            query = self.query(measure, domain=domain, max_items=cap)
            with counted_domains(source, [query]) as [counted]:
                inside = [row for row in ROWS if row[1] != "zoo"]
                scores = by_hand(inside, measure, cap)
                assert counted.leading(9) == ranked(scores, 9)
                assert sum(items for _, items in counted.counts()) == 3
        # Everybody is in one group by the item, so that the groups are told by hand.
        only = [("ann", "park", 3), ("ann", "park", 4), ("bob", "pier", 9), ("cy", "pier", 1)]
        homes = [GroupAssignment("place", ("park", "pier"), group) for group in ("park", "pier")]
        found = leading_counts_of(
            self.priced(only, "integer"),  # type: ignore[arg-type]
            [self.query(measure, home=home) for home in homes],
        )
        assert found == [[("park", 5)], [("pier", 6)]]
        # Where everybody is in two groups they stay in one, with a total or several bounds, too.
        both = [(f"p{n}", place, 3) for n in range(20) for place in ("park", "pier")]
        source = self.priced(both, "integer")
        assert isinstance(source, Engine)
        bounded, listed = measure_of(Sum("price"), 5, 8), measure_of(Sum("price"), [1, 3])
        queries = [self.query(bounded, home=home, max_items=9) for home in homes]
        with counted_domains(source, queries) as groups:
            totals = [group.leading(9) for group in groups]
        with scores_by_bound(source, [self.query(listed, home=home) for home in homes]) as scored:
            ones, threes = ([one.at(place).leading(9) for one in scored] for place in (0, 1))
            assert [one.beyond(1)[0] for one in scored] == [2 * n for [(_, n)] in ones]
        assert totals == threes
        assert [[(item, n * 3) for item, n in one] for one in ones] == threes
        assert 0 < ones[0][0][1] < 20 == ones[0][0][1] + ones[1][0][1]
