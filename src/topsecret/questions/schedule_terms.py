"""What a schedule publishes and when, in public terms, and as a ledger keeps it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import down, exact
from topsecret.questions.answer import planned
from topsecret.questions.periods import DayLike, Periods
from topsecret.questions.planned_lists import Plan
from topsecret.questions.question import Question
from topsecret.sources import Condition, WhereLike
from topsecret.sources.sql.conditions import Expression, conditions

FORM = 1
"""The version of a schedule's record."""

Kind = Literal["cumulative", "window"]


def due_periods(kind: str, periods: int, window: int) -> tuple[int, ...]:
    """The periods after which a list is drawn.

    >>> due_periods("cumulative", 52, 1)
    (1, 2, 4, 8, 16, 32)
    >>> due_periods("window", 10, 4)
    (4, 8, 10)
    """
    if kind == "cumulative":
        return tuple(2**power for power in range(periods.bit_length()))
    whole = range(window, periods + 1, window)
    return (*whole, periods) if periods % window else tuple(whole)


@dataclass(frozen=True, slots=True)
class ScheduleTerms:
    """What a schedule publishes and when. All public; ``record`` is what a ledger keeps."""

    time: str
    periods: Periods
    kind: Kind
    window: int
    asked: Mapping[str, Any]
    """The keywords of one list."""

    def __post_init__(self) -> None:
        if self.kind not in ("cumulative", "window"):
            raise InvalidParameter(f"kind={self.kind!r} must be 'cumulative' or 'window'")
        whole = isinstance(self.window, int) and not isinstance(self.window, bool)
        if not whole or not 1 <= self.window <= self.periods.count:
            raise InvalidParameter(
                f"window={self.window!r} must be a number of periods, from 1 to "
                f"{self.periods.count}"
            )
        if self.kind == "cumulative" and self.window != 1:
            raise InvalidParameter("window needs kind='window'; leave it out")
        if not isinstance(self.time, str) or not self.time:
            raise InvalidParameter("time must be the column that says when; pass time='day'")

    @property
    def due(self) -> tuple[int, ...]:
        """The periods after which a list is drawn."""
        return due_periods(self.kind, self.periods.count, self.window)

    def question(self, period: int | None = None) -> Question:
        """What is asked after a period; of no period in particular for the plan."""
        asked = dict(self.asked)
        where = tuple(condition_from(one) for one in asked.pop("where"))
        if isinstance(asked["item"], list):
            asked["item"] = tuple(asked["item"])
        if period is not None:
            where += self.within(period)
        # A schedule that was begun keeps its mechanism, and its price: no younger rule chooses.
        return Question.of(None, where=where, choose="public", **asked)

    def within(self, period: int) -> tuple[Condition, Condition]:
        """The rows of the list after a period: since the start, or of the last W periods."""
        first = 1 if self.kind == "cumulative" else max(1, period - self.window + 1)
        start, end = self.periods.bounds(first)[0], self.periods.bounds(period)[1]
        midnight = datetime.time()
        return (
            Condition(self.time, ">=", datetime.datetime.combine(start, midnight)),
            Condition(self.time, "<", datetime.datetime.combine(end, midnight)),
        )

    def record(self) -> dict[str, object]:
        """As a ledger keeps it."""
        return {
            "form": FORM,
            "publication": "schedule",
            "time": self.time,
            "kind": self.kind,
            "window": self.window,
            **self.periods.record(),
            "asked": dict(self.asked),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> ScheduleTerms:
        """The terms that a ledger kept."""
        if record.get("publication") != "schedule" or record.get("form") != FORM:
            raise InvalidParameter(
                "the name belongs to a publication that is no schedule of this version; "
                "use another name, or the topsecret that began it"
            )
        periods = Periods.of(**{name: record[name] for name in ("start", "every", "until")})
        return cls(record["time"], periods, record["kind"], record["window"], record["asked"])


def condition_from(record: Mapping[str, Any]) -> Condition | Expression:
    """A condition as its fingerprint wrote it."""
    if "expression" in record:
        return Expression(record["expression"])
    value = record["value"]
    value = tuple(_value(one) for one in value) if isinstance(value, list) else _value(value)
    return Condition(record["column"], record["operator"], value)


def _value(value: Any) -> Any:
    """A value as ``fingerprints.plain`` wrote it."""
    if not isinstance(value, dict):
        return value
    if "date" in value:
        return datetime.date.fromisoformat(value["date"])
    if "datetime" in value:
        return datetime.datetime.fromisoformat(value["datetime"])
    return Decimal(value["Decimal"])


def terms_of(*, where: WhereLike = (), start: DayLike, **given: Any) -> ScheduleTerms:
    """The terms with these keywords, checked as a question is."""
    item = given.pop("item")
    time, every, until = given.pop("time"), given.pop("every"), given.pop("until")
    kind, window = given.pop("kind", "cumulative"), given.pop("window", 1)
    kept = [one.fingerprint() for one in conditions(where)] if where else []
    asked = {"item": item if isinstance(item, str) else list(item), **given, "where": kept}
    periods = Periods.of(start=start, every=every, until=until)
    terms = ScheduleTerms(time, periods, kind, window, asked)
    terms.question()
    for name in ("epsilon", "delta"):
        asked[name] = down(exact(asked[name], name))
    return terms


def schedule_plan(terms: ScheduleTerms) -> Plan:
    """How the lists are drawn, from public numbers alone."""
    question = terms.question()
    return planned(question.numbers, question, None, len(terms.due))
