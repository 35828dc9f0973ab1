"""`strength`: Bradley–Terry strengths of all items with error bars, from noisy win totals.

>>> from topsecret.ranking import Comparisons, strength
>>> winners = ["ada"] * 900 + ["bob"] * 500 + ["ada"] * 950 + ["eve"] * 700
>>> losers = ["bob"] * 900 + ["eve"] * 500 + ["eve"] * 950 + ["bob"] * 250 + ["ada"] * 450
>>> games = Comparisons.from_rows(winners, losers, schedule="public")
>>> ranking = strength(games, epsilon=1)
>>> ranking.items
('ada', 'eve', 'bob')
>>> chance = ranking.win_probability("ada", "bob")
>>> chance.low < chance.probability < chance.high
True

A win counts for more against a strong opponent, and how often an item plays does not matter. The
one private step is ``win_totals.py``: noise on the win totals, however many items there are; the
fit, the ranks and the bars (``bradley_terry.py``) are post-processing, so that all of it may be
shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topsecret.accounting.charge import Charge
from topsecret.accounting.weak_privacy import check_strength
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact, up
from topsecret.mechanisms import parameters as rules
from topsecret.noise.bits import BitSource
from topsecret.ranking.bradley_terry import BradleyTerry
from topsecret.ranking.comparisons import Comparisons
from topsecret.ranking.ranking import at_most_all, budget_line, decided_several, promised_lines
from topsecret.ranking.win_totals import NoisyTotals
from topsecret.results.export import csv_text, printable, with_receipt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Z95 = 1.959964
LAPLACE_TAIL = (math.log(20) / math.sqrt(2) / Z95) ** 2
"""A Laplace variable needs 2.118 standard deviations for 95%, a normal one 1.960."""


@dataclass(frozen=True, slots=True)
class Chance:
    """A probability with its 95% interval."""

    probability: float
    """The best estimate."""
    low: float
    """Where the interval begins."""
    high: float
    """Where it ends."""


@dataclass(frozen=True, slots=True)
class StrengthRanking:
    """Items by strength, best first, with error bars. All of it may be shown.

    *Guarantee.* (epsilon, delta)-differentially private for neighbours that differ in the outcomes
    of one person's comparisons, at most ``per_person``, on the schedule declared public.
    """

    items: tuple[Hashable, ...]
    """The items, strongest first."""
    strengths: tuple[float, ...]
    """Log odds against the average item: 0 is average, 1 wins 73% against it."""
    standard_errors: tuple[float, ...]
    """Of luck and of noise together; a 95% interval is 1.96 of them to either side."""
    games: tuple[int, ...]
    """Public: how many comparisons each item took part in."""
    parts: tuple[int, ...]
    """Public: items of different parts never met, not even through others."""
    size: int
    """Public: how many items there are in all; ``items`` may be the first k of them."""
    epsilon: float
    """Of the privacy guarantee, as proven, rounded up."""
    delta: float
    """Of the privacy guarantee, as proven, rounded up."""
    noise: str
    """The noise on each item's wins, in words."""
    spread: float
    """The standard deviation of strengths, estimated."""
    residual: float
    """How far the fitted equations are from being solved, in wins."""
    schedule: str
    """The public schedule in words."""
    per_person: int = 1
    """How many comparisons one person has, at most."""
    person: str | None = None
    """The column that identifies people; None where each comparison stands for itself."""
    charge: Charge | None = None
    """What it took from a budget; None without a ledger."""

    method = "strength"
    ordered = True

    def win_probability(self, one: Hashable, other: Hashable) -> Chance:
        """How likely ``one`` beats ``other``, with a 95% interval."""
        places = []
        for item in (one, other):
            if item not in self.items:
                raise InvalidParameter(f"{item!r} is not in this ranking; choose from its items")
            places.append(self.items.index(item))
        first, second = places
        if self.parts[first] != self.parts[second]:
            raise InvalidParameter(
                f"{one!r} and {other!r} never met, not even through others; nothing is known of "
                "how they compare"
            )
        lead = self.strengths[first] - self.strengths[second]
        a, b = self.standard_errors[first], self.standard_errors[second]
        # Strengths are taken from their mean, which makes their errors a little opposed.
        both = (
            0.0 if first == second else Z95 * math.sqrt(a * a + b * b + 2 * a * b / (self.size - 1))
        )
        return Chance(_logistic(lead), _logistic(lead - both), _logistic(lead + both))

    @property
    def receipt(self) -> tuple[tuple[str, str], ...]:
        """The receipt as pairs of a label and a text in plain words."""
        if self.person is None:
            protected = (
                f"who won any one comparison. {decided_several(self.delta)} Name the column of "
                "people to protect all that one person decided."
            )
            changed = "one comparison ended otherwise"
        else:
            protected = (
                f"how any one person ({self.person}) decided, in all their comparisons, of which "
                f"{self.per_person} were kept at most. That they took part, and in which "
                "comparisons, is public and not protected."
            )
            changed = "one person decided otherwise throughout"
        return (
            ("Protected", protected),
            ("Public", f"who met whom and how often, as declared by the caller: {self.schedule}."),
            *promised_lines(self.epsilon, self.delta, changed),
            ("Order", "best first, by estimated strength: the log odds against the average item."),
            ("Errors", "± is 1.96 standard errors, the luck of the games and the noise together; "
             "they trust the Bradley-Terry model, the guarantee does not."),
            ("Method", f"(for specialists) strength ({self.noise} on each item's wins; spread of "
             f"strengths {self.spread:.2g}; equations solved to {self.residual:.0e} wins)."),
            ("Budget", budget_line(self.charge, self.person)),
        )  # fmt: skip

    def first(self, k: int) -> StrengthRanking:
        """The k best, which costs nothing more."""
        listed = ("items", "strengths", "standard_errors", "games", "parts")
        return replace(self, **{name: getattr(self, name)[:k] for name in listed})

    def rows(self) -> list[list[Any]]:
        """A header, then one row per item: rank, strength, its interval, games."""
        head = ["rank", "item", "strength", "standard_error", "low", "high", "games", "part"]
        table: list[list[Any]] = [head]
        for place, item in enumerate(self.items):
            value, error = self.strengths[place], self.standard_errors[place]
            bars = [round(x, 4) for x in (value, error, value - Z95 * error, value + Z95 * error)]
            table.append([place + 1, item, *bars, self.games[place], self.parts[place]])
        return table

    def to_csv(self) -> str:
        """The rows as CSV text; the receipt is in ``to_dict``."""
        return csv_text(self.rows())

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values that JSON can hold."""
        values = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}
        values["items"] = [x if isinstance(x, str | int) else str(x) for x in self.items]
        values["charge"] = None if self.charge is None else self.charge.to_dict()
        return {**values, "method": self.method, "receipt": dict(self.receipt)}

    def to_json(self, *, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> StrengthRanking:
        """What ``to_dict`` was made from."""
        known: dict[str, Any] = {n: stored[n] for n in cls.__dataclass_fields__ if n in stored}
        known["charge"] = Charge.from_dict(known["charge"]) if known.get("charge") else None
        return cls(**{n: tuple(v) if isinstance(v, list) else v for n, v in known.items()})  # type: ignore[arg-type]

    def plot(self, most: int = 40) -> Figure:
        """The strengths of the first ``most`` items with their intervals (the extra ``plot``)."""
        from topsecret.ranking.plot import strength_intervals

        return strength_intervals(self.items[:most], self.strengths, self.standard_errors)

    def __str__(self) -> str:
        lines = [
            f"{place:>5}  {printable(item)}  {value:+.2f} ± {Z95 * error:.2f}"
            for place, (item, value, error) in enumerate(
                zip(self.items, self.strengths, self.standard_errors, strict=True), start=1
            )
        ]
        return with_receipt(lines, self.receipt)


def strength(
    comparisons: Comparisons,
    *,
    epsilon: Number,
    delta: Number | None = None,
    k: int | None = None,
    person: str | None = None,
    bits: BitSource | None = None,
) -> StrengthRanking:
    """Rank by Bradley–Terry strength: all items, or the k best; the price is the same.

    Parameters: ``comparisons``: who beat whom; ``epsilon``: how much one outcome, or as many as
    ``comparisons`` has of one person, may change the chance of any answer; ``delta``: for Gaussian
    noise, which adds up to less with other answers; ``k``: how many items; all without it;
    ``person``: who decided, as the receipt names it; ``bits``: where randomness comes from; the
    operating system without it.

    Guarantee: ``epsilon``-DP, with ``delta`` (``epsilon``, ``delta``)-DP, for neighbours that
    differ in the outcomes of ``comparisons.per_person`` comparisons.
    """
    mechanism = NoisyTotals(epsilon, delta, comparisons.per_person)
    check_strength(epsilon, delta or 0)
    if k is not None:
        rules.whole(k, "k")
        at_most_all(k, comparisons)
    totals = mechanism.release(comparisons.half_wins(), bits)
    tail = LAPLACE_TAIL if delta is None else 1.0
    model = BradleyTerry(comparisons.games, mechanism.variance, tail)
    fit = model.fit(totals / 2)
    # Equal strengths stand in the items' public order.
    order = np.argsort(-fit.strengths, kind="stable")[:k]
    played = np.asarray(comparisons.games.sum(axis=1)).ravel()
    law = "discrete Laplace" if delta is None else "Gaussian"
    return StrengthRanking(
        items=tuple(comparisons.items[place] for place in order),
        strengths=tuple(fit.strengths[order].tolist()),
        standard_errors=tuple(fit.standard_errors[order].tolist()),
        games=tuple(int(count) for count in played[order]),
        parts=tuple(model.parts[order].tolist()),
        size=len(comparisons.items),
        epsilon=mechanism.loss.epsilon(0 if delta is None else exact(delta)),
        delta=0.0 if delta is None else up(exact(delta)),
        noise=f"{law} noise of standard deviation {math.sqrt(mechanism.variance):.3g}",
        spread=fit.spread,
        residual=fit.residual,
        schedule=comparisons.described(),
        per_person=comparisons.per_person,
        person=person,
    )


def _logistic(lead: float) -> float:
    return 0.5 * (1 + math.tanh(lead / 2))
