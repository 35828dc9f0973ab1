"""Public periods of time: half-open, one after the other, from a first day to a last.

>>> weeks = Periods.of(start="2026-01-05", every="week", until="2026-12-31")
>>> weeks.count, weeks.bounds(2)
(51, (datetime.date(2026, 1, 12), datetime.date(2026, 1, 19)))
>>> Periods.of(start="2026-01-01", every="month", until="2026-12-31").count
12

A row belongs to the period whose first day is at most its time and whose end, which is the next
one's first day, comes after it. Days begin at midnight UTC.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from topsecret.errors import InvalidParameter

DayLike = str | datetime.date

MOST = 10_000
"""The most periods of one publication."""

_UNITS = {"day": (1, 0), "week": (7, 0), "month": (0, 1), "quarter": (0, 3), "year": (0, 12)}


def day(value: DayLike, name: str) -> datetime.date:
    """A day as a caller writes it."""
    if isinstance(value, datetime.datetime):
        raise InvalidParameter(f"{name}={value} must be a day, without a time")
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        pass
    raise InvalidParameter(f"{name}={value!r} must be a day such as '2026-01-05'")


def moment(value: DayLike | datetime.datetime | None) -> datetime.datetime:
    """The moment that counts as now, in UTC and without a zone."""
    if value is None:
        return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, datetime.datetime):
        aware = value.tzinfo is not None
        return value.astimezone(datetime.UTC).replace(tzinfo=None) if aware else value
    return datetime.datetime.combine(day(value, "now"), datetime.time())


@dataclass(frozen=True)
class Periods:
    """So many periods of one length; make them with :meth:`of`, which checks."""

    start: datetime.date
    """The first day of the first period."""
    every: str
    """How long one is: day, week, month, quarter, year, or such as "2 weeks"."""
    until: datetime.date
    """The last day: a period that ends after it is left out."""

    @classmethod
    def of(cls, *, start: DayLike, every: str, until: DayLike) -> Periods:
        """All periods from ``start`` on that have ended when the day ``until`` has."""
        found = cls(day(start, "start"), every, day(until, "until"))
        _, months = found._step
        if months and found.start.day > 28:
            raise InvalidParameter(
                f"start={found.start} must be a day that every month has, at most the 28th"
            )
        if found.count < 1:
            raise InvalidParameter(
                f"until={found.until} must leave room for one {every} from start={found.start}"
            )
        return found

    @cached_property
    def _step(self) -> tuple[int, int]:
        """Days and months."""
        words = self.every if isinstance(self.every, str) else ""
        found = re.fullmatch(r"(?:(\d{1,3}) )?(day|week|month|quarter|year)s?", words)
        number = int(found[1] or 1) if found else 0
        if not found or number < 1:
            raise InvalidParameter(
                f"every={self.every!r} must be day, week, month, quarter or year, or such as "
                "'2 weeks'"
            )
        days, months = _UNITS[found[2]]
        return number * days, number * months

    @cached_property
    def count(self) -> int:
        """How many periods there are."""
        last = self.until + datetime.timedelta(days=1)
        days, _ = self._step
        if days:
            number = (last - self.start).days // days
        else:
            number = 0
            while number <= MOST and self._edge(number + 1) <= last:
                number += 1
        if number > MOST:
            raise InvalidParameter(
                f"every={self.every!r} gives more than {MOST} periods; take longer ones, or fewer"
            )
        return max(0, number)

    def _edge(self, number: int) -> datetime.date:
        days, months = self._step
        if days:
            return self.start + datetime.timedelta(days=number * days)
        whole = self.start.month - 1 + number * months
        return self.start.replace(year=self.start.year + whole // 12, month=whole % 12 + 1)

    def bounds(self, period: int) -> tuple[datetime.date, datetime.date]:
        """The first day of a period, from 1 on, and the day after its last."""
        return self._edge(period - 1), self._edge(period)

    def ended(self, now: datetime.datetime) -> int:
        """The last period that had ended by then; 0 if none had."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high + 1) // 2
            end = datetime.datetime.combine(self._edge(middle), datetime.time())
            low, high = (middle, high) if end <= now else (low, middle - 1)
        return low

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, self.count + 1))

    def record(self) -> dict[str, str]:
        """What :meth:`of` takes."""
        return {"start": str(self.start), "every": self.every, "until": str(self.until)}
