"""From comparisons to a private ranking: `counting` and `spectral`.

>>> from topsecret.ranking import Comparisons, counting
>>> winners = ["ada"] * 900 + ["bob"] * 500 + ["ada"] * 950
>>> losers = ["bob"] * 900 + ["eve"] * 500 + ["eve"] * 950
>>> games = Comparisons.from_rows(winners, losers, schedule="public")
>>> counting(games, epsilon=1).items
('ada', 'bob', 'eve')

- **counting** ranks by wins with Lap(2/ε): ε-DP on every schedule, for the whole list at once
  (``mechanisms/laplace_ranking.py``). Items that met often collect more wins: fair on even
  schedules.
- **spectral** ranks by the stationary distribution π of the walk to winners (Qiao, Su & Zhang 2021,
  Alg. 3), which weighs a win by the loser's strength. One comparison moves π by at most
  S (``sensitivity.py``), its float version by S + 2η (``stationary.py``); π is not monotone, so all
  mechanisms take s = 2 (``adjacency="replace"``). ``answer="set"`` publishes the unordered top k by
  `OneshotLaplace`, ``answer="list"`` the ordered one by `OneshotExponential`, or with ``delta`` by
  `GumbelTopK` with calibrated picks. The noise grows with k: a full ranking needs k = m.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from topsecret.accounting import calibrate_picks
from topsecret.accounting.charge import Charge
from topsecret.accounting.explanation import shown
from topsecret.accounting.weak_privacy import check_strength, weak_lines
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down, exact, up
from topsecret.mechanisms import (
    GumbelTopK,
    LaplaceRanking,
    Mechanism,
    OneshotExponential,
    OneshotLaplace,
)
from topsecret.mechanisms import parameters as rules
from topsecret.noise.bits import BitSource
from topsecret.ranking.comparisons import Comparisons
from topsecret.ranking.sensitivity import PromisedMixing, promised, teleport_of, unconditional
from topsecret.ranking.stationary import stationary
from topsecret.results.export import printable, with_receipt
from topsecret.results.receipt import UNRECORDED, sharing, without_or_with

TELEPORT = 0.3
"""A common choice: the walk starts anew every third step or so."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """A private ranking, ready to be shown.

    *Guarantee.* ``items`` is (epsilon, delta)-differentially private for neighbours that differ in
    the outcome of one comparison, on the schedule that was declared public.
    """

    items: tuple[Hashable, ...]
    """The items, best first when ``ordered``."""
    ordered: bool
    """Whether the order of the items is part of the answer."""
    epsilon: float
    """Of the privacy guarantee, as proven, rounded up."""
    delta: float
    """Of the privacy guarantee, as proven, rounded up."""
    method: str
    """How they were ranked, by name."""
    schedule: str
    """The public schedule in words."""
    parameters: Mapping[str, float | int | str] = field(default_factory=dict)
    """The method's public parameters."""
    assumption: str | None = None
    """What the guarantee takes for granted, in words; None for nothing."""
    charge: Charge | None = None
    """What it took from a budget; None without a ledger."""

    @property
    def receipt(self) -> tuple[tuple[str, str], ...]:
        """The receipt as pairs of a label and a text in plain words."""
        listed = ", ".join(
            f"{name}={shown(value)}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.parameters.items()
        )
        order = (
            "best first. Random noise took part: items that are nearly level may stand in the "
            "wrong order, or in place of each other."
            if self.ordered
            else "the set has no order. Random noise took part: where items are nearly level, the "
            "wrong one may be in it."
        )
        return (
            ("Protected", f"who won any one comparison. {decided_several(self.delta)}"),
            ("Public", f"who met whom and how often, as declared by the caller: {self.schedule}."),
            *promised_lines(self.epsilon, self.delta, "one comparison ended otherwise"),
            ("Order", order),
            ("Method", f"(for specialists) {self.method} ({listed})."),
            *([] if self.assumption is None else [("ASSUMED", f"{self.assumption}.")]),
            ("Budget", budget_line(self.charge, None)),
        )

    def __str__(self) -> str:
        rows = [
            f"{place if self.ordered else '·':>5}  {printable(item)}"
            for place, item in enumerate(self.items, start=1)
        ]
        return with_receipt(rows, self.receipt)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values that JSON can hold."""
        return {
            "items": [item if isinstance(item, str | int) else str(item) for item in self.items],
            "ordered": self.ordered,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.method,
            "parameters": dict(self.parameters),
            "schedule": self.schedule,
            "assumption": self.assumption,
            "charge": None if self.charge is None else self.charge.to_dict(),
            "receipt": dict(self.receipt),
        }


def decided_several(delta: float) -> str:
    """How somebody is protected who decided more than one comparison, as a sentence."""
    grows = " and delta times 1 + e^epsilon + … + e^((b-1) epsilon)" if delta else ""
    return f"Somebody who decided several, say b, is protected less: at b times epsilon{grows}."


def promised_lines(epsilon: float, delta: float, changed: str) -> tuple[tuple[str, str], ...]:
    """The lines of a receipt that are the same for every ranking."""
    plus = ", plus delta" if delta else ""
    return (
        (
            "Guarantee",
            f"{without_or_with(epsilon, delta)}: had {changed}, no set of rankings would be more "
            f"than e^epsilon times as likely{plus}. This holds for this one ranking; further "
            "answers about the same comparisons weaken it.",
        ),
        *weak_lines(epsilon, delta),
        (
            "Not covered",
            "facts about many comparisons at once (such as that an item wins often); what is "
            "public; the stored data themselves; what other answers about the same comparisons "
            "add.",
        ),
        ("Sharing", sharing("ranking")),
    )


def budget_line(charge: Charge | None, person: str | None) -> str:
    """What was paid, or that nothing was, and which budget could."""
    if charge is not None:
        return f"{charge}."
    who = "'each comparison'" if person is None else person
    return f"{UNRECORDED} For rankings, open it with --person {who} --adjacency outcomes."


def counting(
    comparisons: Comparisons,
    *,
    epsilon: Number,
    k: int | None = None,
    bits: BitSource | None = None,
) -> Ranking:
    """Rank by wins (ties half): the k best in order, or all items.

    Parameters: ``comparisons``: who beat whom; ``epsilon``: how much one outcome may change the
    chance of any answer; ``k``: how many items; all without it; ``bits``: where randomness comes
    from; the operating system without it.

    Guarantee: ``epsilon``-DP, on every schedule, however long the list.
    """
    # In half wins, so that counts are whole: one comparison moves a score by at most 2.
    mechanism = LaplaceRanking(k, epsilon, sensitivity=2)
    check_strength(epsilon, 0)
    at_most_all(k, comparisons)
    selection = mechanism.select(comparisons.half_win_counts(), bits)
    return Ranking(
        items=selection.items,
        ordered=True,
        epsilon=mechanism.loss.epsilon(0),
        delta=0.0,
        method="counting",
        schedule=comparisons.described(),
        parameters={"noise": up(mechanism.scale / 2)},
    )


def spectral(
    comparisons: Comparisons,
    *,
    k: int,
    epsilon: Number,
    delta: Number | None = None,
    teleport: Number = 0,
    answer: Literal["list", "set"] = "list",
    promise: PromisedMixing | None = None,
    bits: BitSource | None = None,
) -> Ranking:
    """Rank by the stationary distribution of the walk to winners: the k best.

    Without ``teleport`` every pair must have met.

    Parameters, beside those of ``counting``: ``k``: how many items; ``delta``: a probability that
    is added to what epsilon allows; ``teleport``: how often the walk jumps to any item;
    ``answer``: a list in order, or a set; ``promise``: the paper's assumption in the place of a
    teleport, which the receipt repeats.

    Guarantee: (``epsilon``, ``delta``)-DP on every dataset of the schedule (of those that keep
    the promise, if there is one).
    """
    rules.whole(k, "k")
    rules.positive(epsilon, "epsilon")
    check_strength(epsilon, delta or 0)
    rules.one_of(answer, "answer", ("list", "set"))
    theta = teleport_of(teleport)
    at_most_all(k, comparisons)
    if promise is None:
        mixing = unconditional(comparisons.most_games, comparisons.fewest_meetings, theta)
    elif theta:
        raise InvalidParameter("teleport needs no promise; leave one of the two out")
    elif comparisons.parts > 1:
        raise InvalidParameter(
            f"the public schedule falls into {comparisons.parts} parts that never met, so that "
            "no promise can hold; pass teleport=0.3, say, or use the method counting"
        )
    else:
        mixing = promised(comparisons.most_games, promise)
    found = stationary(comparisons, theta, mixing)
    moves = up(mixing.sensitivity + 2 * found.error)
    mechanism = top_mechanism(k, epsilon, delta, moves, answer)
    selection = mechanism.select(Histogram.from_counts(found.scores), bits)
    failure = Fraction(0) if delta is None else exact(delta)
    return Ranking(
        items=tuple(comparisons.items[int(place)] for place in selection.items),  # type: ignore[call-overload]
        ordered=selection.ordered,
        epsilon=mechanism.loss.epsilon(failure),
        delta=up(failure),
        method="spectral",
        schedule=comparisons.described(),
        parameters={
            "teleport": float(theta),
            "sensitivity": moves,
            "of which solver": up(2 * found.error),
            "mechanism": type(mechanism).__name__,
        },
        assumption=mixing.assumption,
    )


def top_mechanism(
    k: int, epsilon: Number, delta: Number | None, moves: float, answer: str
) -> Mechanism:
    """What names the k best scores of which each moves by at most ``moves``, in any direction."""
    if answer == "set":
        share = None if delta is None else down(exact(delta, "delta"))
        return OneshotLaplace(k, epsilon, share, moves, "replace")  # type: ignore[arg-type]
    if delta is None:
        return OneshotExponential(k, epsilon, moves, "replace")  # type: ignore[arg-type]
    rules.probability(delta, "delta")
    per_pick = exact(calibrate_picks(k, epsilon, delta))
    return GumbelTopK(k, 2 * exact(moves) / per_pick, False, moves, "replace")


def at_most_all(k: int | None, comparisons: Comparisons) -> None:
    """No list is longer than the public number of items."""
    if k is not None:
        rules.at_most(k, "k", len(comparisons.items), "the number of items")
