"""The receipt of an answer: what it guarantees and what it means, in plain words.

>>> without_or_with(1.0, 0.0)
'epsilon = 1, without a delta'
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from topsecret.accounting.privacy_unit import Adjacency
from topsecret.accounting.weak_privacy import weak_lines
from topsecret.exact.rounding import rounded_up

if TYPE_CHECKING:
    from topsecret.results.release import Release

Lines = tuple[tuple[str, str], ...]

HAD: dict[Adjacency, str] = {
    "add-remove": "had any one person been left out or added",
    "replace": "had any one person had other rows",
    "outcomes": "had any one person decided otherwise",
}
"""What might have been instead, as the beginning of a sentence."""
TOSS: dict[Adjacency, str] = {
    "add-remove": "whether a person is in the data",
    "replace": "which of two sets of rows a person has",
}
"""What somebody may hold for a coin toss before they see the answer, between two neighbours."""
PROOFS: dict[Adjacency, str] = {
    "add-remove": "prove whether they are in the data",
    "replace": "prove which of two sets of rows they have",
    "outcomes": "prove which of two ways they decided",
}
"""What an outcome that only one of two neighbours can have says of a person."""


def receipt_lines(release: Release) -> Lines:
    """Labels and texts. All of it is public: a receipt may be shown with its list."""
    epsilon, delta, unit = release.epsilon, release.delta, release.unit
    return (
        ("Protected", f"{unit.protected}. Someone with two such values counts as two people."),
        ("Compared with", f"{unit.neighbours}. {promise(unit.adjacency)}"),
        ("Guarantee", _guarantee(release)),
        *weak_lines(epsilon, delta),
        ("Protected less", two_people(epsilon, delta)),
        (
            "Not covered",
            "facts about many people at once (such as that an item is common), from which "
            "something may follow about one of them; the stored data themselves; what other "
            "answers about the same people add.",
        ),
        ("Sharing", sharing("list")),
        ("The list", _list(release)),
        ("Missing items", f"{_missing(release)} It does not follow that nobody has it."),
        *([] if release.items else [("Why empty", WHY_EMPTY)]),
        ("Named when", f"{release.threshold}."),
        *_conditions(release),
        (
            "Mechanism",
            f"(for specialists) named {release.mechanism!r} ({_parameters(release)})"
            f"{_line(release)}; its steps are added up by the {release.bound} bound, so that "
            "epsilon may be less than their sum.",
        ),
        ("Budget", _budget(release)),
        ("Made", f"{release.time:%Y-%m-%d %H:%M:%S} UTC by topsecret {release.version}."),
    )


# Said of every empty list: which cause it is may depend on the data.
WHY_EMPTY = (
    "the usual causes (nothing here can tell which one it is): too few people for this epsilon; "
    "the columns of item and person exchanged; a column in which nearly every row has a value of "
    "its own; a filter that keeps few rows."
)

FURTHER = "Each further answer about the same people weakens it."

UNRECORDED = (
    "without a ledger: nothing was recorded. Every answer about the same people adds its epsilon "
    "and its delta, even this question asked again. A ledger adds them up and refuses what exceeds "
    "a total: topsecret budget open NAME --person COLUMN --epsilon TOTAL, then --dataset NAME with "
    "every question. A question without it is not counted."
)

STEPS = {
    "epsilon_of_the_choice": "the choice",
    "k_bar": "tested",
    "epsilon_of_the_length": "tested",
    "epsilon_per_pick": "tested",
    "test_sigma": "tested",
    "test_failure": "tested",
    "full_items": "weighted",
    "most_items": "weighted",
    "sigma": "weighted",
    "threshold": "weighted",
}
"""Of the mechanism that chooses between two methods: to which of them a parameter belongs."""


LINES = {
    "limited-domain": "1 + ln({reach} / threshold_delta) / epsilon_per_pick",
    "limited-domain-laplace": "1 + ln(max_items / threshold_delta) / epsilon_per_pick",
    "optimal-threshold": "1 + ln({reach} / threshold_delta) / epsilon_per_pick",
    "fixed-threshold": "1 + ln(1 / (2 threshold_delta)) / epsilon_per_pick",
}
"""By mechanism: how far above the first item that cannot be named the line lies."""


def _parameters(release: Release) -> str:
    """The public parameters; those of two methods, by method."""
    steps = STEPS if release.mechanism == "tested-or-weighted" else {}
    groups: dict[str, list[str]] = {}
    for name, value in release.parameters.items():
        shown = rounded_up(value) if isinstance(value, float) else value
        groups.setdefault(steps.get(name, "both" if steps else ""), []).append(f"{name}={shown}")
    return "; ".join(
        f"{step}: {', '.join(said)}" if step else ", ".join(said) for step, said in groups.items()
    )


def _line(release: Release) -> str:
    """How far up the line lies that an item must pass, as a formula of the parameters."""
    formula = LINES.get(release.mechanism)
    if formula is None:
        return ""
    cap, slots = release.unit.max_items, release.parameters.get("k_bar")
    reach = "k_bar" if cap is None else "min(max_items, k_bar)"
    if cap is not None and isinstance(slots, int):
        reach = "max_items" if cap < slots else "k_bar"
    shown = formula.format(reach=reach)
    times = ", times sensitivity," if "sensitivity" in release.parameters else ""
    return f", with a line {shown}{times} above the first item that cannot be named"


def sharing(what: str) -> str:
    """Who may see an answer: a guarantee holds for all; what to publish is somebody's decision."""
    return (
        f"the guarantee holds whoever sees the {what} and this receipt, and whatever they do with "
        "them. Whether to publish is the data owner's decision, by the epsilon and delta of all "
        "published answers about the same people, and of all that helped to choose them."
    )


def promise(adjacency: Adjacency) -> str:
    """What differential privacy promises, as a sentence."""
    had = HAD[adjacency]
    return (
        f"{had[:1].upper()}{had[1:]}, every outcome would have had a similar probability; "
        "'Guarantee' says how similar."
    )


def without_or_with(epsilon: float, delta: float) -> str:
    """The two numbers of a guarantee in words; one where there is no delta."""
    if delta == 0:
        return f"epsilon = {rounded_up(epsilon)}, without a delta"
    return f"epsilon = {rounded_up(epsilon)} and delta = {rounded_up(delta)}"


def _guarantee(release: Release) -> str:
    """What the two numbers mean, and whether they are of this list or of several."""
    known = (release.epsilon, release.delta, release.unit.adjacency)
    advance = release.paid_in_advance
    if advance is None:
        return guarantee(*known)
    if advance.publication == "series":
        return guarantee(*known, holds=advance.holds, without="the lists", seen="all of them")
    return guarantee(*known, holds=advance.holds, without="the list")


def _budget(release: Release) -> str:
    """What was paid, from which budget."""
    paid = release.charge or release.paid_in_advance
    return UNRECORDED if paid is None else f"{paid}."


def guarantee(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    *,
    holds: str = f"for this one answer. {FURTHER}",
    without: str = "the answer",
    seen: str = "it",
) -> str:
    """What the two numbers mean for one person."""
    factor = (
        rounded_up(math.nextafter(math.exp(epsilon), math.inf), 3) if epsilon < 20 else "e^epsilon"
    )
    # P ≤ e^ε·0 + δ for the set of all outcomes that the neighbour cannot have.
    added = (
        f", and a further 1 in {_one_in(delta):,} (delta). For each person, the outcomes that "
        f"would {PROOFS[adjacency]} have at most that last probability, all together"
        if delta
        else ""
    )
    figures, are = ("these figures", "they are") if delta else ("this figure", "it is")
    return (
        f"{without_or_with(epsilon, delta)}. The guarantee holds with {figures}; the question "
        f"may have allowed a little more. The smaller {are}, the better each person is protected. "
        f"No one person changes the probability of any outcome by more than a factor of {factor} "
        f"(e^epsilon), up or down{added}.{_guess(epsilon, delta, adjacency, without, seen)} This "
        f"holds also against someone who knows all rows of everybody else, {holds} This is about "
        "privacy; it does not say how accurate the list is."
    )


def _guess(epsilon: float, delta: float, adjacency: Adjacency, without: str, seen: str) -> str:
    """What the best guess between two possibilities for one person is worth, in words."""
    if adjacency not in TOSS or (right := best_guess(epsilon, delta)) is None:
        return ""
    guessed = (
        f" A guess {TOSS[adjacency]}, right 50% of the time without {without}, is right at most"
    )
    # Two versions of one person's rows are two steps apart: one person less, one person more.
    twice = best_guess(2 * epsilon, delta * (1 + math.exp(epsilon)))
    did = (
        f". A guess which of two things a person did is right at most {twice}% of the time: "
        "between these are two steps, the person removed and then added with other rows, so "
        "epsilon counts twice"
        if adjacency == "add-remove" and twice
        else ""
    )
    surer = f"{'Both start' if did else 'This starts'} from 50%: someone who was surer before may"
    return f"{guessed} {right}% of the time with {seen}{did}. {surer} be surer after."


def best_guess(epsilon: float, delta: float) -> str | None:
    """How often the best guess between two neighbours is right, in percent; None near 100.

    At most (e^ε + δ)/(1 + e^ε): P ≤ e^ε·Q + δ for every set of answers and its complement bounds a
    test's two errors by e^ε·α + β ≥ 1 − δ and α + e^ε·β ≥ 1 − δ; add them (Kairouz, Oh and
    Viswanath 2015).

    >>> best_guess(1.0, 1e-6), best_guess(10.0, 1e-6)
    ('73.2', None)
    """
    likely = math.exp(-epsilon)
    right = 100 * (1 + delta * likely) / (1 + likely)
    return None if right > 99.8 else rounded_up(right * (1 + 1e-12), 3)  # above the float's error


def two_people(epsilon: float, delta: float) -> str:
    """What holds for two people together: (2ε, (1 + e^ε)·δ), rounded up.

    Whoever knows that both or neither of them are in the data compares these two cases.
    """
    said = (
        "two people together, such as a couple known to be both in the data or both not, or one "
        "with two values: twice the epsilon"
    )
    if delta == 0:
        return f"{said}."
    # Above the error of the float.
    together = delta * (1 + math.exp(epsilon)) * (1 + 1e-12) if epsilon < 700 else 1.0
    if together >= 1:
        return f"{said}, and a delta that promises nothing."
    return (
        f"{said}, and a delta of {rounded_up(together, 3)}, since one of the two deltas counts "
        "e^epsilon times."
    )


def _one_in(delta: float) -> int:
    """The largest n of two digits and zeros with delta <= 1/n."""
    n = int(1 / Fraction(rounded_up(delta)))  # as it is shown
    return int(str(n)[:2].ljust(len(str(n)), "0"))


PRIVATE_SIZES = ("canonical-set", "oneshot-private-length")
"""Mechanisms of a public domain that choose the size of the answer with noise."""

SERIES = "series"
"""What a series calls its mechanism."""

WEIGHTED_ORDER = (
    " The order is by weighted people, not by the number of people: those who have many items "
    "count less, or for some of them only, so that an item of theirs may stand far lower."
)

METHOD = " A noisy look at the data"
"""Where the sentence begins that says which of two methods was chosen, also in stored answers."""


def _list(release: Release) -> str:
    """How the list ended, what its order is worth, and last by which method it was made."""
    ended, look, method = release.ending.partition(METHOD)
    order = order_in_words(release.ordered, bool(release.items))
    if order and release.weighted is not None:
        order += WEIGHTED_ORDER
    return f"{ended}{order}{look}{method}"


def order_in_words(ordered: bool, any_items: bool) -> str:
    """What the order of a list is worth, as sentences after the one about its end."""
    if not ordered:
        return " Its order means nothing."
    if not any_items:
        return ""
    return (
        " Random noise was added to protect each person: items that are nearly level may change "
        "places, and one from below the list may stand in it."
    )


def _missing(release: Release) -> str:
    if release.domain:
        other = "has more" if release.least else "ranks lower"
        if release.k == "all":  # a bound was asked for that a listed item must reach
            other = "was not shown to have as many people as were asked for"
        return (
            f"all items of the public domain could be named; one that is not listed {other}, or "
            f"was unlucky with the noise.{_cut(release)}"
        )
    if release.k == "all":
        return (
            "an item that is not listed may have too few people to be named safely, or for what "
            "was asked; or its people have many items each, so that they count less, or not for "
            "it, and it could not be shown; or the noise decided."
        )
    # Of a series: each person has a limited number of counts for life.
    uncounted = (
        "people who have it may have had no counts left; " if release.mechanism == SERIES else ""
    )
    return (
        "an item that is not listed may rank lower; it may have too few people to be named "
        f"safely; {uncounted}or it belongs on the list, and the noise put others first."
    )


def _cut(release: Release) -> str:
    """That a size was chosen with noise and is smaller than asked for, where it was."""
    if release.mechanism not in PRIVATE_SIZES or release.chosen in (None, release.k):
        return ""
    kind = "list" if release.ordered else "set"
    drawn = f"The {kind} was cut to {release.chosen}"
    if release.filled:
        drawn = f"Only {release.chosen} of the {kind} were drawn from the data"
    return (
        f" {drawn}, the size that the noisy counts support: an item may be missing for that reason "
        "alone."
    )


def _conditions(release: Release) -> list[tuple[str, str]]:
    """What was counted and how, where it was not simply everything."""
    lines = []
    if release.domain:
        lines.append(("Public domain", f"{release.domain}; no other item could be named."))
    if release.unit.max_items is not None:
        one = release.unit.max_items == 1
        items, counted = ("item", "was counted") if one else ("items", "were counted")
        period = ", in each period" if release.measure.startswith("rise") else ""
        lines.append(
            (
                "Cap",
                f"at most {release.unit.max_items} {items} of each person {counted}{period}, "
                "chosen with a secret key.",
            )
        )
    lines += [("Clipped", f"{release.clipping}.")] if release.clipping else []
    lines += [("Assumes", f"{said}.") for said in release.assumes]
    if release.counts:
        together = "" if release.intervals is None else release.intervals.together
        lines.append(
            (
                "Counts",
                f"of distinct people, with noise: each true count lies within "
                f"{release.half_width} of the one shown with 95% probability{together}.",
            )
        )
        if release.ordered and release.intervals is not None and len(release.counts) > 1:
            lines.append(("Order", release.intervals.order_in_words(release.counts)))
    if release.persons is not None and release.intervals is not None:
        width = release.intervals.persons_half_width()
        lines.append(
            (
                "Persons",
                f"{release.persons:,} people in all, within {width} with 95% probability; it came "
                "with the counts at no cost.",
            )
        )
    if release.at_least:
        lines.append(
            (
                "At least",
                "each item has at least the number of distinct people shown: all numbers hold "
                "together with 95% probability. They come from weighted people ('Named when' says "
                "how much each counts) and are no estimates: the true counts may be far larger.",
            )
        )
    return lines
