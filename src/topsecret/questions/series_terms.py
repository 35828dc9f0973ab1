"""What a series publishes, in public terms, and as a ledger keeps it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from topsecret.calibration.series import SeriesNumbers
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down, exact
from topsecret.questions.periods import DayLike, Periods, day
from topsecret.questions.question import Question
from topsecret.questions.schedule_terms import Kind, condition_from
from topsecret.sources import Condition, WhereLike
from topsecret.sources.sql.conditions import conditions

FORM = 1
"""The version of a series' record."""

MAX_COUNTS: dict[str, int] = {"cumulative": 10, "window": 100}
"""How many counts a person has for life, unless it is said."""
LATE = 4
ENDLESS = 3_650
"""How many periods a window has where no last day is given."""


@dataclass(frozen=True, slots=True)
class SeriesTerms:
    """What a series publishes. All public; ``record`` is what a ledger keeps."""

    time: str
    periods: Periods
    late: int
    numbers: SeriesNumbers
    """Noise and thresholds: as they were when the series was begun, for ever."""
    asked: Mapping[str, Any]
    """The keywords of one list."""

    @property
    def kind(self) -> Kind:
        """Whether sums are of all periods, or of the last W."""
        return self.numbers.kind

    @property
    def window(self) -> int:
        """W, the number of periods that a window has."""
        return self.numbers.window

    @property
    def question(self) -> Question:
        """What is asked after every period, of no period in particular."""
        asked = dict(self.asked)
        where = tuple(condition_from(one) for one in asked.pop("where"))
        if isinstance(asked["item"], list):
            asked["item"] = tuple(asked["item"])
        return Question.of(None, where=where, **asked)

    def within(self, first: int, last: int) -> tuple[Condition, Condition]:
        """The rows of the periods from ``first`` to ``last``."""
        midnight = datetime.time()
        start, end = self.periods.bounds(first)[0], self.periods.bounds(last)[1]
        return (
            Condition(self.time, ">=", datetime.datetime.combine(start, midnight)),
            Condition(self.time, "<", datetime.datetime.combine(end, midnight)),
        )

    def read(self, after: int, period: int) -> list[tuple[int, int]]:
        """Which periods' rows are read after ``period``, the last one sealed being ``after``.

        A window must know of which period a row is, since a row must not count again W periods
        later; sums of all periods need not.
        """
        first = max(1, after + 1 - self.late)
        if self.kind == "cumulative":
            return [(first, period)]
        return [(one, one) for one in range(first, period + 1)]

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the guarantee rests on, in words."""
        own = (
            "the noise is computed from a secret key that the ledger keeps: the guarantee holds "
            "against whoever does not have the key and cannot break the keyed hash BLAKE2b, while "
            "noise drawn anew would need no such assumption",
            "a person's identifier never changes: each has "
            f"{self.numbers.max_counts} counts for life, first come, first counted",
        )
        if self.kind == "window" and self.window >= 2:
            return (
                *own,
                "no row depends on earlier lists of the series: for windows of two periods or "
                "more the guarantee does not cover rows that do",
            )
        return own

    def record(self) -> dict[str, object]:
        """As a ledger keeps it."""
        numbers = self.numbers
        return {
            "form": FORM,
            "publication": "series",
            "time": self.time,
            "late": self.late,
            "kind": numbers.kind,
            "window": numbers.window,
            "max_counts": numbers.max_counts,
            "sigma": str(numbers.sigma),
            **self.periods.record(),
            "asked": dict(self.asked),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> SeriesTerms:
        """The terms that a ledger kept, with the noise that the series began with."""
        if record.get("publication") != "series" or record.get("form") != FORM:
            raise InvalidParameter(
                "the name belongs to a publication that is no series of this version; "
                "use another name, or the topsecret that began it"
            )
        periods = Periods.of(**{name: record[name] for name in ("start", "every", "until")})
        numbers = SeriesNumbers(
            record["kind"],
            periods.count,
            record["window"],
            record["max_counts"],
            Fraction(record["asked"]["delta"]),
            Fraction(record["sigma"]),
        )
        return cls(record["time"], periods, record["late"], numbers, record["asked"])


def series_terms(
    *,
    item: str | list[str] | tuple[str, ...],
    person: str,
    time: str,
    every: str,
    start: DayLike,
    until: DayLike | None,
    k: int,
    epsilon: Number,
    delta: Number,
    kind: Kind = "cumulative",
    window: int = 1,
    max_counts: int | None = None,
    late: int = LATE,
    where: WhereLike = (),
) -> SeriesTerms:
    """The terms with these keywords, checked as a question is."""
    if kind not in MAX_COUNTS:
        raise InvalidParameter(f"kind={kind!r} must be 'cumulative' or 'window'")
    if kind == "cumulative" and window != 1:
        raise InvalidParameter("window needs kind='window'; leave it out")
    if isinstance(k, bool) or not isinstance(k, int):
        raise InvalidParameter(f"k={k!r} of a series must be a whole number")
    if not isinstance(time, str) or not time:
        raise InvalidParameter("time must be the column that says when; pass time='day'")
    if isinstance(late, bool) or not isinstance(late, int) or late < 0:
        raise InvalidParameter(f"late={late!r} must be a number of periods, 0 or more")
    kept = [one.fingerprint() for one in conditions(where)] if where else []
    named = item if isinstance(item, str) else list(item)
    epsilon, delta = down(exact(epsilon, "epsilon")), down(exact(delta, "delta"))
    if until is None:
        if kind == "cumulative":
            raise InvalidParameter(
                "until is missing: cumulative sums need a last day; a far one costs little"
            )
        until = _far(start, every)
    periods = Periods.of(start=start, every=every, until=until)
    limit = MAX_COUNTS[kind] if max_counts is None else max_counts
    numbers = SeriesNumbers.calibrated(kind, periods.count, window, limit, epsilon, delta)
    asked: dict[str, Any] = {"item": named, "person": person, "k": k}
    asked |= {"epsilon": epsilon, "delta": delta, "where": kept}
    terms = SeriesTerms(time, periods, late, numbers, asked)
    _ = terms.question  # checks item, person, k and the budget
    return terms


def _far(start: DayLike, every: str) -> datetime.date:
    """A last day so many periods away that nobody will see it, as far as the calendar goes."""
    first = day(start, "start")
    try:
        return Periods(first, every, first).bounds(ENDLESS)[1] - datetime.timedelta(days=1)
    except (OverflowError, ValueError) as error:
        if isinstance(error, InvalidParameter):
            raise
    raise InvalidParameter(f"every={every!r} is too long for a series without end; pass until")
