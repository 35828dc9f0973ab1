"""One schedule: a question and its times, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from sqlalchemy import RowMapping

from topsecret.errors import InvalidParameter
from topsecret.service.jobs.job import Asked

Every = Literal["day", "week", "month"]
MOST_RUNS = 100
LATEST_START = timedelta(days=366)
AS_GOOD_AS_NOW = timedelta(hours=1)
"""A start so long ago still counts as now: a form may stay open for a while."""
LAST_DAY = 28
"""The last day of a month that a schedule can name: every month has it."""

WAITING, ASKED, ENDED = "waiting", "asked", "ended"
SKIPPED, REFUSED, GIVEN_UP = "skipped", "refused", "given up"


@dataclass(frozen=True, slots=True)
class Run:
    """One time of a schedule."""

    number: int
    at: datetime
    state: str
    answer: str | None
    message: str | None

    def to_dict(self) -> dict[str, object]:
        """As plain values that JSON can hold."""
        at = self.at.isoformat(timespec="seconds")
        said = {"state": self.state, "answer": self.answer, "message": self.message}
        return {"number": self.number, "at": at} | said


@dataclass(frozen=True, slots=True)
class Schedule:
    """A question and the times at which it is asked."""

    id: str
    user: str
    name: str
    dataset: str
    asked: Asked
    every: str
    runs: tuple[Run, ...]

    @property
    def to_come(self) -> tuple[Run, ...]:
        """The runs whose time has not come, or that have no end yet."""
        return tuple(run for run in self.runs if run.state in (WAITING, ASKED))

    @property
    def last_answer(self) -> str | None:
        """The job of the latest run that became one."""
        return next((run.answer for run in reversed(self.runs) if run.answer), None)

    def to_dict(self) -> dict[str, object]:
        """As plain values that JSON can hold."""
        return {
            "id": self.id,
            "account": self.user,
            "name": self.name,
            "dataset": self.dataset,
            "words": self.asked.words,
            "every": self.every,
            "runs": [run.to_dict() for run in self.runs],
        }


def run_times(start: datetime, every: str, times: int, now: datetime) -> list[datetime]:
    """When the question is asked, in UTC.

    >>> monday = datetime(2026, 11, 16, 6, tzinfo=UTC)
    >>> [str(at)[:10] for at in run_times(monday, "week", 3, monday)]
    ['2026-11-16', '2026-11-23', '2026-11-30']
    >>> [str(at)[:10] for at in run_times(monday, "month", 3, monday)]
    ['2026-11-16', '2026-12-16', '2027-01-16']
    """
    if every not in get_args(Every):
        raise InvalidParameter(f"a question is asked every {', '.join(get_args(Every))}")
    if not 1 <= times <= MOST_RUNS:
        raise InvalidParameter(f"a question is scheduled 1 to {MOST_RUNS} times")
    start = start.replace(tzinfo=UTC) if start.tzinfo is None else start
    if not now - AS_GOOD_AS_NOW <= start <= now + LATEST_START:
        raise InvalidParameter("the first time is now or within a year from now, in UTC")
    start = start.astimezone(UTC)
    if every != "month":
        step = timedelta(days=1 if every == "day" else 7)
        return [start + number * step for number in range(times)]
    if start.day > LAST_DAY:
        raise InvalidParameter(
            f"what is asked every month begins on one of the days 1 to {LAST_DAY}"
        )
    months = [start.month - 1 + number for number in range(times)]
    return [start.replace(year=start.year + m // 12, month=m % 12 + 1) for m in months]


def schedule_of(rows: Sequence[RowMapping]) -> Schedule:
    """A schedule from the rows of its runs, each with what is the schedule's."""
    first = rows[0]
    runs = tuple(
        Run(
            row["number"],
            datetime.fromtimestamp(row["at"], UTC),
            row["state"],
            row["answer"],
            row["message"],
        )
        for row in rows
    )
    asked = Asked.from_text(first["question"])
    named = (first["id"], first["user"], first["name"], first["dataset"])
    return Schedule(*named, asked, first["every"], runs)
