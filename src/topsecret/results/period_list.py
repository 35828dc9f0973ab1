"""The list that is shown for a period: drawn for it, or held from an earlier one."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import Literal

from topsecret.accounting.weak_privacy import weak_sentence
from topsecret.exact.rounding import rounded_up
from topsecret.results.release import Release


@dataclass(frozen=True, slots=True)
class PeriodList:
    """What a schedule or a series shows for one period.

    *Guarantee.* All lists that a schedule or a series ever shows are together
    (``epsilon``, ``delta``)-differentially private; a list that is held costs nothing. What a
    series needs for that is in ``caveats``.
    """

    name: str
    """Under which the ledger knows the schedule or series."""
    period: int
    """Which of the periods, from 1 on; 0 before the first has ended."""
    periods: int
    """How many periods there are in all."""
    start: datetime.date | None
    """The period's first day."""
    end: datetime.date | None
    """The day after the period's last."""
    release: Release | None
    """None where no list was drawn yet."""
    drawn_for: int
    """The period that the list was drawn for; an earlier one where the list is held."""
    drawn_until: datetime.date | None
    """The day after that period's last: no later row is in the list."""
    lists: int
    """How many lists are drawn in all, at most."""
    epsilon: float
    """Of all lists together."""
    delta: float
    """Of all lists together."""
    cut_short: tuple[int, ...] = ()
    """Periods whose list was due and was cut short; the owner may write them off."""
    publication: Literal["schedule", "series"] = "schedule"
    """Which of the two it is."""
    caveats: tuple[str, ...] = ()
    """What the guarantee rests on, in words."""
    values: tuple[float, ...] | None = None
    """Of a series: the items' noisy numbers of counted people, in the list's order."""
    deviation: float | None = None
    """The standard deviation of the values' noise."""
    growth: tuple[float | None, ...] | None = None
    """By how much each value has grown since the list before; None for an item new since then."""
    growth_deviation: float | None = None
    """The standard deviation of the growths' noise."""

    @property
    def held(self) -> bool:
        """Whether the list is that of an earlier period."""
        return self.release is not None and self.drawn_for != self.period

    @property
    def title(self) -> str:
        """Which period this is, and which list is shown for it, in one line."""
        if self.period == 0 or self.start is None or self.end is None:
            return f"{self.name}: no period has ended yet"
        last = self.end - datetime.timedelta(days=1)
        place = f"{self.name}, period {self.period} of {self.periods} ({self.start} to {last})"
        if self.release is None or self.drawn_until is None:
            return f"{place}: no list was drawn yet"
        if self.held:
            until = self.drawn_until - datetime.timedelta(days=1)
            return f"{place}: the list of period {self.drawn_for}, with rows until {until}"
        return f"{place}: a list of its own"

    @property
    def together(self) -> str:
        """What all lists cost together, in words."""
        weak = weak_sentence(self.epsilon, self.delta)
        spent = f"({rounded_up(self.epsilon)}, {rounded_up(self.delta)})"
        private = f"{spent}-differentially private"
        if self.publication == "series":
            rows = "; ".join(("The lists were paid for at once, before the first", *self.caveats))
            return (
                f"All lists of this series, {self.lists:,} at most, are together "
                f"{private}. {rows}.{weak}"
            )
        if self.lists == 1:
            return (
                f"The one list of this schedule, shown as often as wanted, is {private}. It was "
                f"paid for in advance.{weak}"
            )
        return (
            f"The {self.lists} lists of this schedule, and their repetitions, are together "
            f"{private}, for rows that may "
            "depend on lists that were shown before. They were paid for at once, before the "
            f"first.{weak}"
        )

    def __str__(self) -> str:
        parts = [self.title, *([] if self.release is None else [str(self.release)]), self.together]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, object]:
        """Plain values that JSON can hold."""
        shown: dict[str, object] = {
            "name": self.name,
            "period": self.period,
            "periods": self.periods,
            "start": None if self.start is None else str(self.start),
            "end": None if self.end is None else str(self.end),
            "held": self.held,
            "drawn_for": self.drawn_for,
            "drawn_until": None if self.drawn_until is None else str(self.drawn_until),
            "cut_short": list(self.cut_short),
            "lists": self.lists,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "release": None if self.release is None else self.release.to_dict(),
        }
        if self.publication == "series":
            shown |= {
                "publication": self.publication,
                "caveats": list(self.caveats),
                "values": None if self.values is None else list(self.values),
                "deviation": self.deviation,
                "growth": None if self.growth is None else list(self.growth),
                "growth_deviation": self.growth_deviation,
            }
        return shown

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
