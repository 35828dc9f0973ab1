"""The public rule behind mechanism="auto": the smallest needed lead wins.

Only mechanisms that answer the same question compete: ordered lists of observed items on an unknown
domain, and on a public domain those that may name any item. ``tested`` looks deeper than
``limited-domain``, so that their leads, over different ranks, do not compare: between these two k
alone decides, by what was best on synthetic shapes (docs/tested-top-k.md). k="auto" is always
``stable``. Without a delta, from k = 10 on and with at least 10·k public items, a private length
finds more: ``canonical-set``, or ``oneshot-private-length`` where an order is asked for. (There a
lead says little, since a shorter answer is an answer too.)

On an unknown domain, from four items on, picks win where people have many items and weighted
people where they have few, which no public number tells: ``tested-or-weighted`` finds out, for
a twentieth of the budget. So it does by rows and sums, unless their bound is chosen privately. With
``choose="public"`` the data are never asked.

>>> recommend(Question.of(k=1, epsilon=1.0)).name
'limited-domain'
>>> recommend(Question.of(k=10, epsilon=1.0)).name
'tested-or-weighted'
>>> recommend(Question.of(k=10, epsilon=1.0, choose="public")).name
'tested'
>>> recommend(Question.of(k="auto", epsilon=1.0)).name
'stable'
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from topsecret.calibration import PUBLIC_DOMAIN, Question, applicable, refusal
from topsecret.counts.weights import FULL_ITEMS
from topsecret.errors import InvalidParameter
from topsecret.mechanisms.tested_schedule import default_k_bar
from topsecret.planning.leads import LIKELY, needed_by_one, smallest
from topsecret.planning.tested import last_chance, rough_schedule

UNKNOWN = ("limited-domain-laplace", "limited-domain", "tested")
PUBLIC = ("gumbel", "pruned", "permute-and-flip", "oneshot-exponential")
PURE = ("permute-and-flip", "oneshot-exponential")
"""In the order of preference when needed leads are equal."""

LEAST_LENGTH, LEAST_ITEMS = 10, 10
"""From which k on, and with how many times k public items, a private length is worth its price."""

SHORTEST_TESTED = 4
"""From this k on ``tested`` competes, below it ``limited-domain``."""

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-4, 10.0
"""Where the reverse question is answered."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The mechanism that "auto" uses, and why."""

    name: str
    why: str


def competing(question: Question) -> tuple[str, ...]:
    """The mechanisms that the rule compares."""
    rivals: tuple[str, ...] = UNKNOWN if question.domain_size is None else PUBLIC
    if question.delta == 0:
        rivals = _without_delta(question)
    known = [name for name in rivals if name in applicable(question)]
    if "tested" in known:
        known.remove("limited-domain" if question.length >= SHORTEST_TESTED else "tested")
    if _counts_in_full(question) and "weighted" in applicable(question):
        known.append("weighted")
    return tuple(known)


def _counts_in_full(question: Question) -> bool:
    """Whether the cap is so low that weights count every person in full: leads compare then."""
    cap, persons = question.max_items, question.scores is None
    return question.choose == "private" and persons and cap is not None and cap <= FULL_ITEMS


def asks_the_data(question: Question) -> bool:
    """Whether "auto" spends a part of the budget on choosing between picks and weights."""
    if question.choose == "public" or isinstance(question.k, str) or question.at_least is not None:
        return False
    if question.length < SHORTEST_TESTED or _counts_in_full(question):
        return False
    return refusal("tested-or-weighted", question) is None


@lru_cache(maxsize=256)
def recommend(question: Question) -> Recommendation:
    """The mechanism with the smallest needed lead among those that compete."""
    if (settled := _without_leads(question)) is not None:
        return settled
    leads: dict[str, int] = {}
    others = []
    for name in competing(question):
        best = min(leads.values(), default=None)
        if name == "tested" and best is not None and best <= _least_lead_of_tested(question):
            others.append("tested needs more")
            continue  # its calibration is the slowest, and it cannot win
        # A lead of so many people is one of so many times what a person adds at most.
        if (lead := needed_by_one(name, question.ranked_by(None))) is not None:
            leads[name] = lead
    if not leads:
        rivals = PUBLIC if question.domain_size else UNKNOWN
        if (reason := refusal(rivals[-1], question)) is not None:
            raise reason
        raise InvalidParameter(
            f"no mechanism can answer k={question.k} at epsilon={question.epsilon}; "
            "raise epsilon or lower k"
        )
    winner = min(leads, key=leads.__getitem__)
    others[:0] = [f"{name} needs {lead}" for name, lead in leads.items() if name != winner]
    return Recommendation(winner, _why(question, winner, leads[winner], others))


@lru_cache(maxsize=256)
def recommended_name(question: Question) -> str:
    """``recommend(question).name``, at once where nothing else competes: its lead is not needed."""
    return settled_name(question) or recommend(question).name


def settled_name(question: Question) -> str:
    """The same where no lead is needed to know it, otherwise nothing."""
    if (settled := _without_leads(question)) is not None:
        return settled.name
    rivals = competing(question)
    return rivals[0] if len(rivals) == 1 else ""


def _without_leads(question: Question) -> Recommendation | None:
    """What the rule takes without comparing needed leads."""
    if question.delta > 0 and (question.k == "all" or question.at_least is not None):
        return Recommendation("weighted", "all safe items are named above one threshold.")
    if question.total and (reason := refusal("weighted", question)) is not None:
        raise reason
    if question.total:
        return Recommendation("weighted", "max_total bounds all that one person adds.")
    if question.k == "auto" and question.delta > 0:
        return Recommendation("stable", "k='auto' leaves the length of the answer to the counts.")
    if asks_the_data(question):
        why = ASKED if question.scores is None else MEASURED_ASKED
        return Recommendation("tested-or-weighted", why)
    if question.delta == 0:
        reason = refusal("tested", question)  # it needs a delta: says what does not
        if reason is not None and (isinstance(question.k, str) or question.domain_size is None):
            raise reason
        first = _without_delta(question)[0]
        if first in PRIVATE_LENGTH:
            return Recommendation(first, PRIVATE_LENGTH[first])
    return None


def _without_delta(question: Question) -> tuple[str, ...]:
    """Those that the rule compares where delta is 0."""
    size, k = question.domain_size or 0, question.length
    special = question.scores is not None or question.least
    if k >= LEAST_LENGTH and size >= LEAST_ITEMS * k and not special:
        if not question.ordered:
            return ("canonical-set",)
        if not question.fill:
            return ("oneshot-private-length",)
    return PURE if question.ordered else (*PURE, "oneshot-laplace")


PRIVATE_LENGTH = {
    "canonical-set": (
        "without a delta, from 10 items on and with at least ten times as many public ones, a set "
        "drawn at once finds more than one-shot noise on most data (docs/results/e10-pure.md), and "
        "it names only as many items as the counts can carry. With k near 10 it can lose: on "
        "BrightKite (k = 10, epsilon = 0.4) it found 0.53 of the top 10 and one-shot noise 0.71, "
        "on MEDCOST (k = 10, epsilon = 1) 0.63 and 0.76; from k = 50 on it lost nowhere more than "
        "0.05. Where the order matters, ask for a list (ordered)."
    ),
    "oneshot-private-length": (
        "without a delta, from 10 items on and with at least ten times as many public ones, a "
        "shorter list with less noise has more of its items right and in order on most data "
        "(docs/results/e10-pure.md)."
    ),
}
"""Why, for those that the rule takes without comparing leads."""


ASKED = (
    "a twentieth of the budget pays for a noisy look at the data, which chooses one of two: tested "
    "picks, which win where people have many items each, or weighted people, which win where they "
    "have few. The answer says which it was, and costs the same either way. With choose = public "
    "the data are not looked at for that, and picks are taken."
)


MEASURED_ASKED = (
    "a twentieth of the budget pays for a noisy look at the data, which chooses one of two: tested "
    "picks, which win where people add to many items, or sums of which all that one person adds is "
    "bounded together, which win where they add to few. The answer says which it was, and costs "
    "the same either way. With choose = public the data are not looked at for that, and picks are "
    "taken."
)


def _why(question: Question, winner: str, lead: int, others: list[str]) -> str:
    over = (
        f"the rest of the {question.domain_size:,} public items"
        if winner in PUBLIC_DOMAIN
        else f"every item below the top {question.k}"
    )
    if winner == "weighted":
        has = (
            f"it has {lead} of them, whatever others have; in leads over others,"
            if question.domain_size is None
            else f"it has {lead} of them more than the rest of the public items;"
        )
        return (
            f"with at most {question.max_items} items each, all people count in full, and an item "
            f"is named with {LIKELY:.0%} probability when {has} {', '.join(others)}."
        )
    unit = "people" if question.scores is None else "times the bound on one person"
    return (
        f"an item of the top {question.k} is named with {LIKELY:.0%} probability when it has "
        f"{lead} {unit} more than {over}; {', '.join(others) or 'nothing else competes'}."
    )


def _least_lead_of_tested(question: Question) -> int:
    """A lead below which the test alone passes with less than 95%: Φ((lead − 1)/σ − z)."""
    test = rough_schedule(question.length, question.epsilon, question.delta).lengths[0].test
    # 1.64 is below Φ⁻¹(.95).
    return math.floor(float(test.sigma) * (float(test.quantile) + 1.64))


def rough_lead(name: str, question: Question) -> int | None:
    """The needed lead, for a search: ``tested`` without its calibration."""
    if name != "tested":
        return needed_by_one(name, question)
    schedule = rough_schedule(question.length, question.epsilon, question.delta)
    k = question.length
    slots = question.k_bar if question.k_bar_given else default_k_bar(k)
    return smallest(lambda lead: last_chance(schedule, slots, lead, k))


def smallest_epsilon(question: Question, lead: int) -> float:
    """The smallest epsilon of two digits at which the recommended mechanism needs at most this.

    Needed leads fall as epsilon grows. ``tested`` is looked for with rough numbers and then
    checked with the calibrated ones.
    """
    if question.k == "auto":
        names: tuple[str, ...] = ("stable",) if question.delta else ()
    else:
        names = competing(question.at(1.0))
    found = [step for name in names if (step := _smallest_step(name, question, lead)) is not None]
    if not found:
        raise InvalidParameter(
            f"needed_lead={lead} cannot be reached with epsilon up to {LARGEST_EPSILON:g}; "
            "raise needed_lead, raise delta or lower k"
        )
    step = min(found)
    while not _reached(question.at(_epsilon(step)), lead):
        step += 1
    return _epsilon(step)


def _reached(question: Question, lead: int) -> bool:
    reached = needed_by_one(recommend(question).name, question)
    return reached is not None and reached <= lead


_LAST = 90 * 5
"""Steps of two digits from 10⁻⁴ to 10: 10, 11, …, 99 in each of five decades, then 10."""


def _epsilon(step: int) -> float:
    decade, digits = divmod(step, 90)
    return float(f"{digits + 10}e{decade - 5}")


def _smallest_step(name: str, question: Question, lead: int) -> int | None:
    def enough(step: int) -> bool:
        reached = rough_lead(name, question.at(_epsilon(step)))
        return reached is not None and reached <= lead

    if not enough(_LAST):
        return None
    # Leads are nearly proportional to 1/epsilon: from any step the next guess is close.
    low, high, guess = -1, _LAST, 90 * 4
    while high - low > 1:
        guess = min(max(guess, low + 1), high - 1)
        epsilon = _epsilon(guess)
        reached = rough_lead(name, question.at(epsilon))
        if reached is not None and reached <= lead:
            high = guess
        else:
            low = guess
        aim = epsilon * (reached / lead if reached is not None else 16.0)
        near = _step(aim)
        guess = near if low < near < high and near != guess else (low + high) // 2
    return high


def _step(epsilon: float) -> int:
    """The step nearest below an epsilon."""
    decade = math.floor(math.log10(max(epsilon, SMALLEST_EPSILON)) + 1e-12)
    digits = int(epsilon / 10.0 ** (decade - 1) + 1e-9)
    return (decade + 4) * 90 + digits - 10
