"""A mechanism that spends a budget, and how to speak about it. All public."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topsecret.accounting import Loss
from topsecret.calibration.question import Question
from topsecret.counts.clip import Clip
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import Weights
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.mechanisms.selection import Selection
from topsecret.results.export import Public
from topsecret.results.intervals import Intervals

if TYPE_CHECKING:
    from topsecret.calibration.counts import PreparedCounts

EMPTY_ADVICE = (
    "ask for fewer items, spend more epsilon, or ask for all (k = all), which names every item "
    "that is safe to name; a cap on each person's items (max_items) or a public list of all items "
    "(domain) helps, too"
)
"""What to ask instead after an empty list."""

CHOSEN = "A noisy look at the data, included in epsilon, chose one of two methods:"

Telling = Callable[[Question, Selection], str]
"""How an answer ended, as a sentence that goes on after "The list"."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One mechanism, calibrated: ``mechanism.loss`` keeps to the question's (ε, δ)."""

    name: str
    """As ``top_k`` takes it."""
    question: Question
    """What was asked, in numbers."""
    mechanism: Mechanism
    """The mechanism itself."""
    parameters: Mapping[str, Public]
    """Its public parameters, by name."""
    scale: float
    """The scale of the noise that a count must stand out from, in people."""
    named_when: str
    """The rule by which an item may be named, in words."""
    answer: str
    """What comes back, in words."""
    nothing: str
    """What NOTHING means here, in words; that it cannot occur, where it cannot."""
    telling: Telling
    """How its answer is told in words."""
    over_rank: int | None = None
    """The rank of the item that a lead is measured against; None for the next item after a drop."""
    k_bar: int | None = None
    """How many leading items are looked at, where that is not the question's ``k_bar``."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """The rule of each branch, where a choice takes one of several."""

    @property
    def rows(self) -> int:
        """How many leading counts the mechanism may look at: k̄ and the next."""
        return (self.question.k_bar if self.k_bar is None else self.k_bar) + 1

    def rule(self, branch: str | None) -> str:
        """By which rule an item of this branch was named, in words."""
        return self.rules.get(branch or "", self.named_when)

    def told(self, selection: Selection) -> str:
        """How this answer ended: a function of the answer and public numbers."""
        return self.telling(self.question, selection)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a mechanism released about one histogram: private, free to be shown."""

    items: tuple[Hashable, ...]
    """The named items."""
    complete: bool
    """Whether all items that were asked for are named."""
    ordered: bool
    """Whether the order of the items is part of the answer."""
    chosen: int | None
    """A number that the mechanism chose and released too; None if it chose none."""
    ending: str
    """How the list ended, going on after "The list"."""
    counts: tuple[int, ...] | None
    """Noisy counts of the items; None without."""
    persons: int | None
    """The noisy number of people; None where it was not asked for."""
    intervals: Intervals | None
    """What the counts tell; None without counts, or where no item was released."""
    values: tuple[int, ...] | None
    """Noisy weighted people, in 1/1024, where the selection releases them."""
    at_least: tuple[int, ...] | None
    """How many people each item has at least, where the selection tells."""
    symbols: int
    """How many symbols were released, for budgets that pay by the symbol."""
    branch: str | None = None
    """Which option a private choice named, where there was one."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What answers one list: a selection and, where they were asked for, noisy counts.

    *Guarantee.* ``draw`` costs ``loss``, which is (``epsilon``, ``delta``)-DP by the bound named.
    """

    question: Question
    """What was asked, in numbers."""
    selection: Prepared
    """The mechanism that names items."""
    counts: PreparedCounts | None
    """What adds noisy counts; None where none were asked for."""
    parameters: Mapping[str, Public]
    """The public parameters, by name."""
    loss: Loss
    """What the answer costs."""
    epsilon: float
    """What the loss proves at ``delta``, rounded up."""
    delta: float
    """Of the whole answer."""
    bound: str
    """The composition bound that proves epsilon."""
    rows: int
    """How many leading counts are needed from a source."""

    @property
    def weights(self) -> Weights | Clip | None:
        """The weights, or bounds, with which people are to be counted; None for plain counts."""
        return getattr(self.selection.mechanism, "weights", None)

    def draw(self, histogram: Histogram, persons: int | None = None) -> Drawn:
        """The answer about secret counts, drawn once; with the secret number of people, if any."""
        selection, asked_for = self.selection.mechanism.select(histogram), self.question.k
        items = selection.items
        symbols = len(items) + (not selection.complete) + (selection.chosen is not None)
        noisy = (
            None if self.counts is None else self.counts.release(histogram, items, symbols, persons)
        )
        return Drawn(
            items,
            selection.complete and (isinstance(asked_for, str) or len(items) == asked_for),
            selection.ordered,
            selection.chosen,
            self.selection.told(selection),
            None if noisy is None else noisy.counts,
            None if noisy is None else noisy.persons,
            None if noisy is None else noisy.intervals,
            selection.values,
            selection.at_least,
            symbols,
            selection.branch,
        )


def list_ended(question: Question, selection: Selection) -> str:
    """For lists that NOTHING may end."""
    k = question.length
    if len(selection.items) == k:
        return f"has {_all(k)} asked for."
    if not selection.items:
        return (
            "is empty. The items were too close together to be named safely, or noise made them "
            f"look so: {_advice(question)}."
        )
    return (
        f"ended early, with {len(selection.items)} of {_items(k)}: "
        "the next ones were too close together to be named safely, or noise made them look so."
    )


def _advice(question: Question) -> str:
    """What to ask instead; there are no fewer items than one."""
    if question.domain_size is not None:
        return "ask for fewer items or spend more epsilon"
    return EMPTY_ADVICE if question.length > 1 else EMPTY_ADVICE.split(", ", 1)[1]


def list_tested(question: Question, selection: Selection) -> str:
    """For the longest of several nested lists that passes one test."""
    k, tried, named = question.length, selection.chosen, len(selection.items)
    if named == k:
        what, true = (
            ("it", "it is the true first") if k == 1 else ("them", f"they are the true top {k}")
        )
        return (
            f"has {_all(k)} asked for. A noisy test allowed naming {what}; it did not "
            f"check that {true}."
        )
    chosen = f"a length of {tried} was chosen with noise as what the counts can support"
    if named == 0:
        return (
            f"is empty. Of {_items(k)} asked for {chosen}, and neither it "
            "nor a shorter part of it passed the test. The counts are too close together at this "
            f"budget, or noise made them look so: {_advice(question)}."
        )
    if named == tried:
        return f"is shorter than asked for: of {_items(k)} {chosen}. All {named} passed."
    return (
        f"is shorter than asked for: of {_items(k)} {chosen}, and its strongest {named} passed "
        "the test."
    )


def list_weighted(question: Question, selection: Selection) -> str:
    """For lists of everything above a threshold, or the best of it."""
    named, least = len(selection.items), question.at_least
    if question.k != "all" and named == question.length:
        return f"has {_all(named)} asked for."
    if least is not None:
        bounds = "by bounds that all hold together with 95% probability"
        return (
            f"holds the {_items(named)} shown to have at least {least:,} people, {bounds}."
            if named
            else f"is empty. No item could be shown to have at least {least:,} people."
        )
    if question.k == "all":
        return (
            f"holds the {_items(named)} that passed the threshold with noise."
            if named
            else "is empty. No item passed the threshold with noise."
        )
    if named == 0:
        return (
            "is empty. No item has enough weighted people to be named safely at this budget, or "
            f"noise made it look so: {_advice(question)}."
        )
    return (
        f"has {named} of {_items(question.length)}: the others have too few weighted people to be "
        "named safely, or noise made them look so."
    )


def list_of_sums(question: Question, selection: Selection) -> str:
    """For the best of all that exceeds a threshold, by rows or sums."""
    named, k = len(selection.items), question.length
    if named == k:
        return f"has {_all(k)} asked for."
    if named == 0:
        return (
            "is empty. No item has enough to be named safely at this budget, or noise made it look "
            f"so: {_advice(question)}."
        )
    return (
        f"has {named} of {_items(k)}: the others have too little to be named safely, or noise made "
        "them look so."
    )


def list_chosen(question: Question, selection: Selection) -> str:
    """For lists by one of two mechanisms, which of them was chosen."""
    if selection.branch == "weighted" and question.scores is not None:
        ending = list_of_sums(question, selection)
        return f"{ending} {CHOSEN} the one that bounds all that a person adds together."
    if selection.branch == "weighted":
        ending = list_weighted(question, selection)
        return f"{ending} {CHOSEN} the one by weighted people."
    ending = list_tested(question, selection)
    return f"{ending} {CHOSEN} the one that tests the whole list."


def list_of_rises(question: Question, selection: Selection) -> str:
    """For rises among what the lists of two periods name."""
    named, k = len(selection.items), question.length
    if named == k:
        return f"has {_all(k)} asked for."
    if named == 0:
        return (
            "is empty. No item of either period could be named safely at this budget: spend more "
            "epsilon, or give a public list of all items (domain)."
        )
    return f"has {named} of {_items(k)}: the lists of both periods named no more."


def set_ended(question: Question, selection: Selection) -> str:
    """For sets that may hold fewer than k items."""
    k, named = question.length, len(selection.items)
    if named == k:
        return f"has {_all(k)} asked for."
    return (
        f"has {named} of {_items(k)}: the others were too close together to be named safely, or "
        "noise made them look so."
    )


def set_of_private_size(question: Question, selection: Selection) -> str:
    """For sets drawn at once, their size chosen privately, perhaps completed at random."""
    k, drawn = question.length, selection.chosen
    if drawn == k:
        return f"has {_all(k)} asked for, drawn at once."
    chosen = f"the size {drawn} was chosen with noise as what the counts can support"
    if question.fill:
        return (
            f"has {k} items, of which the first {drawn} were drawn from the data: {chosen}. The "
            f"last {k - (drawn or 0)} were filled in at random, without looking at the data."
        )
    return f"names {drawn} of {_items(k)}: {chosen}."


def list_of_private_length(question: Question, selection: Selection) -> str:
    """For ordered lists whose length was chosen privately."""
    k, named = question.length, len(selection.items)
    if named == k:
        return f"has {_all(k)} asked for."
    return (
        f"names {named} of {_items(k)}: that length was chosen with noise as what the counts can "
        "support."
    )


def set_stable(question: Question, selection: Selection) -> str:
    """For sets whose size the counts decide."""
    if selection.complete:
        return (
            f"holds {_items(len(selection.items))}, after which the counts drop. Where to cut was "
            "chosen with noise, and the drop there passed a test with noise."
        )
    return (
        "is empty. No drop in the counts was wide enough to be shown safely, or noise made it look "
        "so."
    )


def _all(number: int) -> str:
    return "the one item" if number == 1 else f"all {number} items"


def _items(number: int) -> str:
    return f"{number} item" if number == 1 else f"{number:,} items"
