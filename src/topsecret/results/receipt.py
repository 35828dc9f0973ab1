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

LIMITED = "the guarantee limits how much that can change how likely any answer is"
TOSS: dict[Adjacency, str] = {
    "add-remove": "whether a person is in the data",
    "replace": "which of two sets of rows a person has",
}
"""What somebody may hold for a coin toss before they see the answer, between two neighbours."""


def receipt_lines(release: Release) -> Lines:
    """Labels and texts. All of it is public: a receipt may be shown with its list."""
    parameters = ", ".join(
        f"{name}={rounded_up(value) if isinstance(value, float) else value}"
        for name, value in release.parameters.items()
    )
    epsilon, delta, unit = release.epsilon, release.delta, release.unit
    order = order_in_words(release.ordered, bool(release.items))
    return (
        ("Protected", f"{unit.protected}."),
        ("Compared with", f"{unit.neighbours}: {LIMITED}."),
        ("Guarantee", guarantee(epsilon, delta, unit.adjacency)),
        *weak_lines(epsilon, delta),
        (
            "Not covered",
            "what is true of many people at once; the rows themselves, where they are kept; what "
            "other answers about the same people add. This receipt may be shown with the list.",
        ),
        ("The list", release.ending + order),
        ("Missing items", f"{_missing(release)} It does not follow that nobody has it."),
        *([] if release.items else [("Why empty", WHY_EMPTY)]),
        ("Named when", f"{release.threshold}."),
        *_conditions(release),
        (
            "Mechanism",
            f"(for specialists) named {release.mechanism!r} ({parameters}); epsilon is added up by "
            f"the {release.bound} bound.",
        ),
        ("Budget", UNRECORDED if release.charge is None else f"{release.charge}."),
        ("Made", f"{release.time:%Y-%m-%d %H:%M:%S} UTC by topsecret {release.version}."),
    )


# Said of every empty list: which cause it is may depend on the data.
WHY_EMPTY = (
    "the usual causes, of which nobody can say here which it is: too few people for this epsilon; "
    "the columns of item and person exchanged; a column in which nearly every row has a value of "
    "its own; a filter that keeps few rows."
)

UNRECORDED = (
    "not recorded: every answer about the same people, this question asked again included, adds "
    "its epsilon and its delta. A ledger adds them up, and refuses what exceeds a total."
)


def without_or_with(epsilon: float, delta: float) -> str:
    """The two numbers of a guarantee in words; one where there is no delta."""
    if delta == 0:
        return f"epsilon = {rounded_up(epsilon)}, without a delta"
    return f"epsilon = {rounded_up(epsilon)} and delta = {rounded_up(delta)}"


def guarantee(epsilon: float, delta: float, adjacency: Adjacency) -> str:
    """What the two numbers mean for one person."""
    factor = (
        rounded_up(math.nextafter(math.exp(epsilon), math.inf), 3) if epsilon < 20 else "e^epsilon"
    )
    added = (
        f"; beyond that, delta adds at most 1 in {_one_in(delta):,} to its probability"
        if delta
        else ""
    )
    return (
        f"{without_or_with(epsilon, delta)}: no one person makes any outcome more than {factor} "
        f"times as likely, or as unlikely (e^epsilon){added}. This holds for each person, for this "
        f"one answer; other answers add to it.{_guess(epsilon, delta, adjacency)} This is about "
        "privacy; it does not say how accurate the list is."
    )


def _guess(epsilon: float, delta: float, adjacency: Adjacency) -> str:
    """What the best guess between two possibilities for one person is worth, in words."""
    if adjacency not in TOSS or (right := best_guess(epsilon, delta)) is None:
        return ""
    guessed = (
        f" Who guesses from the answer {TOSS[adjacency]}, at even odds before, is right at most"
    )
    # Two versions of one person's rows are two steps apart: one person less, one person more.
    twice = best_guess(2 * epsilon, delta * (1 + math.exp(epsilon)))
    did = f"; which of two things a person did, {twice}%" if adjacency == "add-remove" else ""
    return f"{guessed} {right}% of the time{did if twice else ''}."


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


def _one_in(delta: float) -> int:
    """The largest n of two digits and zeros with delta <= 1/n."""
    n = int(1 / Fraction(delta))
    return int(str(n)[:2].ljust(len(str(n)), "0"))


def order_in_words(ordered: bool, any_items: bool) -> str:
    """What the order of a list is worth, as sentences after the one about its end."""
    if not ordered:
        return " Its order means nothing."
    noisy = "Random noise, which hides any one person, took part: where items are nearly level, the"
    if not any_items:
        return ""
    return f" {noisy} wrong one may come first, or be listed in place of the right one."


def _missing(release: Release) -> str:
    if release.domain:
        other = "has more" if release.least else "ranks lower"
        return (
            f"all items of the public domain could be named; one that is not listed {other}, or "
            "was unlucky with the noise."
        )
    return (
        "an item that is not listed may rank lower; it may have too few people to be named "
        "safely; or it belongs on the list, and the noise put others first."
    )


def _conditions(release: Release) -> list[tuple[str, str]]:
    """What was counted and how, where it was not simply everything."""
    lines = []
    if release.domain:
        lines.append(("Public domain", f"{release.domain}; no other item could be named."))
    if release.unit.max_items is not None:
        items = "item" if release.unit.max_items == 1 else "items"
        period = ", in each period" if release.measure.startswith("rise") else ""
        lines.append(
            (
                "Cap",
                f"at most {release.unit.max_items} {items} of each person were counted{period}, "
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
                f"{release.persons:,} in all, within {width} with 95% probability; it came with "
                "the counts at no cost.",
            )
        )
    if release.at_least:
        lines.append(
            (
                "At least",
                "so many distinct people have each item: all numbers of the list hold "
                "together with 95% probability. They come from weighted persons, of which "
                "those with many items count less, and are no estimates of the counts.",
            )
        )
    return lines
