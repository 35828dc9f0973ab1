"""Which way of publishing lists over time serves, from public numbers alone.

Three ways share one budget: independent lists, one after every period, a `Schedule` of few lists
that are held, and a `Series` with correlated noise. Which one finds most of the true top k
depends on how many people the k-th item has and on how many items a person has. Both are guessed
by the owner, on an example; no data is read.

>>> found = compare_over_time(
...     persons=30_000, items_per_person=30, kth_count=800, k=10, periods=12, epsilon=1.0
... )
>>> [way.name for way in found.ways]
['independent', 'schedule', 'series']
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from topsecret.calibration.series import UNIT, SeriesNumbers
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down, exact
from topsecret.questions.answer import planned
from topsecret.questions.planned_lists import Plan
from topsecret.questions.question import Question
from topsecret.questions.schedule_terms import Kind, due_periods
from topsecret.questions.series_terms import MAX_COUNTS

EXPONENT = 0.5
"""How fast counts fall with the rank: the j-th item has (k/j)^.5 times as many as the k-th."""
POINTS = 6
"""At how many times, evenly spread, the lists are looked at."""
RUNS = 12
MOST_ITEMS = 20_000
LIMITS = (1, 3, 10, 30, 100)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of publishing, and what it is expected to find."""

    name: str
    """Of the way."""
    recall: float
    """The expected share of the true top k that is named, mean of several times."""
    lists: int
    """How many lists are drawn."""
    words: str
    """What is published, in words."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a number of counts for life costs and buys."""

    max_counts: int
    """How many counts each person has for life."""
    share: float
    """The share of the pairs of person and item that count at the end."""
    deviation: float
    """The standard deviation of the noise, in people."""
    threshold: float
    """How many counted people an item needs to be named."""
    recall: float
    """The expected share of the true top k that is named."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The three ways, and what other limits of counts would do for the series. Public."""

    ways: tuple[Way, Way, Way]
    """The three ways."""
    limits: tuple[Limit, ...]
    """Other limits of counts."""
    kth_deviations: float
    """How many standard deviations of the series' noise the k-th item's counted people are."""

    @property
    def best(self) -> Way:
        """The first of those that are within .02 of the best: what needs less comes first."""
        most = max(way.recall for way in self.ways)
        return next(way for way in self.ways if way.recall >= most - 0.02)

    def to_dict(self) -> dict[str, object]:
        """Plain values that JSON can hold."""
        return {
            "best": self.best.name,
            "ways": [{"name": w.name, "recall": w.recall, "lists": w.lists} for w in self.ways],
            "kth_deviations": self.kth_deviations,
            "limits": [
                {name: getattr(limit, name) for name in Limit.__slots__} for limit in self.limits
            ],
        }


def compare_over_time(
    *,
    persons: int,
    items_per_person: float,
    kth_count: int,
    k: int,
    periods: int,
    epsilon: Number,
    delta: Number = 1e-6,
    kind: Kind = "cumulative",
    window: int = 1,
    max_counts: int | None = None,
) -> Comparison:
    """The expected recall of independent lists, a schedule and a series.

    Parameters: ``persons``: how many people there are, about; ``items_per_person``: how many items
    one has on average, over the whole time; ``kth_count``: how many people the last item of the
    list has, over the whole time; ``k``: how many items a list has; ``periods``: how many lists;
    ``epsilon``: of all lists together; ``delta``: of all lists together; ``kind``: lists of
    all rows so far (cumulative), or of a window; ``window``: how many periods a window has;
    ``max_counts``: how many counts a person has for life in a series.

    The example's counts fall with the root of the rank and come in evenly; people's numbers of
    items are exponential. Lists of the first two ways are drawn by the real mechanisms; the series'
    recall is computed from its noise.
    """
    for name, value in (("persons", persons), ("kth_count", kth_count), ("periods", periods)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidParameter(f"{name}={value!r} must be a whole number of at least 1")
    if not items_per_person > 0 or not math.isfinite(items_per_person):
        raise InvalidParameter(f"items_per_person={items_per_person} must be above 0")
    if kind not in MAX_COUNTS:
        raise InvalidParameter(f"kind={kind!r} must be 'cumulative' or 'window'")
    given = down(exact(epsilon, "epsilon")), down(exact(delta, "delta"))
    # By picks, as schedules are drawn: the example does not say who has which items.
    question = Question.of(
        item="item", person="person", k=k, epsilon=given[0], delta=given[1], choose="public"
    )
    if kth_count > persons:
        raise InvalidParameter(f"kth_count={kth_count} must be at most persons={persons}")
    counts = _example(persons, items_per_person, kth_count, k)
    shape = _Shape(counts, items_per_person, periods, window, kind, k)
    due = due_periods(kind, periods, window)
    every = planned(question.numbers, question, None, periods)
    few = planned(question.numbers, question, None, len(due))
    limit = MAX_COUNTS[kind] if max_counts is None else max_counts
    limits = tuple(
        _limit(shape, SeriesNumbers.calibrated(kind, periods, window, one, *given))
        for one in sorted({limit, *LIMITS})
    )
    chosen = next(one for one in limits if one.max_counts == limit)
    points = shape.points
    drawn_anew = sum(_drawn(every, shape, point) for point in points) / len(points)
    held = {point: max((p for p in due if p <= point), default=0) for point in points}
    kept = {p: _drawn(few, shape, p) if p else 0.0 for p in set(held.values())}
    ways = (
        Way("independent", drawn_anew, periods, f"{periods} lists, each with {_each(every)}"),
        Way(
            "schedule",
            sum(kept[held[point]] for point in points) / len(points),
            len(due),
            f"{len(due)} lists, each with {_each(few)}, held in between",
        ),
        Way(
            "series",
            chosen.recall,
            periods,
            f"{periods} lists; {limit} counts per person for life, noise of "
            f"{chosen.deviation:.3g} people at the end",
        ),
    )
    counted = kth_count * chosen.share * (min(1, window / periods) if kind == "window" else 1)
    return Comparison(ways, limits, counted / chosen.deviation)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The example's counts at the end, largest first, and how they come in."""

    counts: list[int]
    items_per_person: float
    periods: int
    window: int
    kind: str
    k: int

    def at(self, period: int) -> list[int]:
        """The counts after a period."""
        reach = period if self.kind == "cumulative" else min(period, self.window)
        return [count * reach // self.periods for count in self.counts]

    def share(self, max_counts: int, period: int) -> float:
        """Which share of the present pairs counts, where people's items are exponential.

        A person with X items, of which a part has come by now, has min(X, D) of them counted; of a
        window only those of people who have counts left.
        """
        left = max_counts / (self.items_per_person * period / self.periods)
        if self.kind == "cumulative":
            return -math.expm1(-left)
        return 1 - math.exp(-left) * (1 + left)

    @property
    def points(self) -> list[int]:
        return sorted({math.ceil(self.periods * i / POINTS) for i in range(1, POINTS + 1)})


def _each(plan: Plan) -> str:
    return f"epsilon {plan.each.epsilon:.3g}"


def _example(persons: int, items_per_person: float, kth_count: int, k: int) -> list[int]:
    """Counts that fall with the rank until all pairs of person and item are given out."""
    left = persons * items_per_person
    counts: list[int] = []
    while left > 0 and len(counts) < MOST_ITEMS:
        count = min(persons, math.floor(kth_count * (k / (len(counts) + 1)) ** EXPONENT))
        if count < 1:
            break
        counts.append(count)
        left -= count
    return counts


def _drawn(plan: Plan, shape: _Shape, period: int) -> float:
    """The mean recall of lists that the real mechanism draws of the example."""
    counts = shape.at(period)
    rows = [(f"{rank:06}", count) for rank, count in enumerate(counts) if count > 0]
    best = {name for name, _ in rows[: shape.k]}
    histogram = Histogram.leading(rows[: plan.each.rows], limit=plan.each.rows)
    found = 0
    for _ in range(RUNS):
        found += len(best.intersection(plan.each.draw(histogram, None).items))
    return found / (RUNS * shape.k)


def _limit(shape: _Shape, numbers: SeriesNumbers) -> Limit:
    recalls = [_remembered(shape, numbers, point) for point in shape.points]
    return Limit(
        numbers.max_counts,
        shape.share(numbers.max_counts, numbers.periods),
        numbers.deviation(numbers.periods),
        numbers.threshold(numbers.periods) / UNIT,
        sum(recalls) / len(recalls),
    )


def _remembered(shape: _Shape, numbers: SeriesNumbers, period: int) -> float:
    """The share of the true top k above the threshold and above where k items are expected."""
    share = shape.share(numbers.max_counts, period)
    sums = [share * count for count in shape.at(period) if count > 0]
    deviation, threshold = numbers.deviation(period), numbers.threshold(period) / UNIT

    def above(level: float, some: list[float]) -> float:
        return sum(math.erfc((level - one) / deviation / math.sqrt(2)) / 2 for one in some)

    low, high = threshold, threshold + max([0.0, *sums]) + 10 * deviation
    if above(low, sums) > shape.k:
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if above(middle, sums) > shape.k else (low, middle)
    return above(low, sums[: shape.k]) / shape.k
