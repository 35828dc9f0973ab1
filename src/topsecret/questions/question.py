"""What is asked, in public terms: one frozen value, however the question came in.

Python's keywords, the command line and the service build a ``Question``, which checks every
parameter once, before a source is opened; ``answer`` takes it from there.

>>> question = Question.of(item="place", person="user", k=10, epsilon=1)
>>> question.numbers.k_bar
200
>>> question.fingerprint()["counted"]["person"]
'user'
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Required, TypedDict

from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.accounting.weak_privacy import check_strength, is_strong
from topsecret.calibration.counts import CountsBudget
from topsecret.calibration.from_outside import check_object
from topsecret.calibration.from_outside import fingerprint as mechanism_fingerprint
from topsecret.calibration.question import Question as Numbers
from topsecret.calibration.question import Scores
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.questions.rise import rising
from topsecret.sources import (
    Amount,
    BoundLike,
    Condition,
    CountQuery,
    DomainLike,
    Expression,
    GroupAssignment,
    MeasureLike,
    WhereLike,
    domain_of,
    measure_of,
)
from topsecret.sources.fingerprints import Fingerprint
from topsecret.sources.measures import MOST_ITEMS
from topsecret.sources.sql.conditions import conditions

if TYPE_CHECKING:
    from topsecret.ledger import Flexible, Metered
    from topsecret.results.group_releases import Group

FORM = 2
"""The version of a question's fingerprint; 1 is what ``ledger.first_form`` reads."""

USUAL_DELTA = 1e-6
"""δ where nobody says, and no budget has a smaller one for the question."""


class Keywords(TypedDict, total=False):
    """The keywords of a question, spelled once for all that ask."""

    item: Required[str | Sequence[str] | Expression]
    person: Required[str]
    k: Required[int | Literal["auto", "all"]]
    epsilon: Number | None
    delta: Number | None
    k_bar: int | None
    mechanism: str | Mechanism
    where: WhereLike
    max_items: int | None
    domain: DomainLike | None
    counts: bool
    counts_part: float | None
    counts_share: float | None
    count_persons: bool
    ordered: bool
    fill: bool
    salt: bytes
    version: str | None
    at_least: int | None
    weighting: str
    choose: str | None
    measure: MeasureLike
    max_per_item: BoundLike | None
    max_total: Amount | None
    order: Literal["most", "least"]
    rise_from: WhereLike


@dataclass(frozen=True, slots=True)
class Groups:
    """One list for each of several public values of a column, or of an expression.

    With ``disjoint`` each person is kept in one group alone; otherwise in all of theirs.
    """

    by: str | Expression
    """The column, or the expression, whose values are the groups."""
    values: tuple[Group, ...]
    """The groups to answer for."""
    disjoint: bool = False
    """Whether each person is kept in one group alone."""

    def __post_init__(self) -> None:
        given = () if isinstance(self.values, str) else tuple(self.values)
        object.__setattr__(self, "values", given)
        named = isinstance(self.by, str | Expression) and self.by
        if not named or not given or len(set(given)) < len(given):
            raise InvalidParameter(
                f"by={self.by!r} needs groups=[…], the public values to answer for, each once; "
                "they are not taken from the data"
            )

        if self.disjoint and isinstance(self.by, Expression):
            raise InvalidParameter(
                "disjoint=True needs groups by a column; leave disjoint out, or make a view with "
                "the expression as a column"
            )

    @property
    def name(self) -> str:
        """What defines the groups, in words."""
        return self.by.text if isinstance(self.by, Expression) else self.by

    @property
    def lists(self) -> int:
        """How many of the lists one person can be in."""
        return 1 if self.disjoint else len(self.values)

    def only(self, value: Group) -> Condition | Expression:
        """What a row of this group fulfils."""
        if not isinstance(self.by, Expression):
            return Condition(self.by, "=", value)
        written = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
        return Expression(f"({self.by.text}) = {written}")

    def fingerprint(self) -> Fingerprint:
        """The column, its values, and whether each person is in one group alone."""
        by = self.by.fingerprint() if isinstance(self.by, Expression) else self.by
        return {"by": by, "values": list(self.values), "disjoint": self.disjoint}


@lru_cache(maxsize=256, typed=True)
def _numbers(
    k: int | Literal["auto", "all"],
    epsilon: Number,
    delta: Number,
    k_bar: int | None,
    max_items: int | None,
    at_least: int | None,
    weighting: str,
    choose: str | None,
) -> tuple[Numbers, bool]:
    """The numbers, checked, and whether they protect as is usual."""
    numbers = Numbers.of(
        k=k,
        epsilon=epsilon,
        delta=delta,
        k_bar=k_bar,
        max_items=max_items,
        at_least=at_least,
        weighting=weighting,
        choose=choose,
    )
    return numbers, is_strong(numbers.epsilon, numbers.delta)


def usual_delta(
    terms: Metered | Flexible | None, epsilon: Number, groups: Groups | None, *kind: bool
) -> float:
    """δ where none is given: a flexible budget has its own for each ε and kind of question."""
    if terms is None or terms.kind == "metered":
        return USUAL_DELTA
    from topsecret.ledger.question_delta import usual_delta as part

    return min(USUAL_DELTA, part(terms, epsilon, groups.lists if groups else 1, *kind))


@lru_cache(maxsize=256)
def _unit(person: str, max_items: int | None) -> PrivacyUnit:
    return PrivacyUnit(person, max_items=max_items)


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that is asked. Make one with :meth:`of`, which checks it."""

    counted: CountQuery
    """Which rows, who owns them, what is counted and how much of each person."""
    numbers: Numbers
    """How many items, and the budget of the whole question."""
    mechanism: str | Mechanism = "auto"
    """The algorithm, by name or as an object."""
    counts: CountsBudget | None = None
    """What noisy counts get of the budget; None for no counts."""
    groups: Groups | None = None
    """The groups to answer for; None for one list."""
    version: str | None = None
    """Which data it is, in the caller's words, where the source does not say."""
    count_persons: bool = False
    """Whether the number of all people comes with the counts."""
    rise_from: tuple[Condition | Expression, ...] = ()
    """The rows of an earlier period, over which items are ranked by their rise; none for counts."""
    usual_delta: bool = False
    """Whether delta was left out: the budget that pays decides on it then."""
    known_as: float | None = None
    """The delta that the ledger knows the question by, where it is another."""

    @classmethod
    def of(
        cls,
        terms: Metered | Flexible | None = None,
        groups: Groups | None = None,
        *,
        item: str | Sequence[str] | Expression,
        person: str,
        k: int | Literal["auto", "all"],
        epsilon: Number | None = None,
        delta: Number | None = None,
        k_bar: int | None = None,
        mechanism: str | Mechanism = "auto",
        where: WhereLike = (),
        max_items: int | None = None,
        domain: DomainLike | None = None,
        counts: bool = False,
        counts_part: float | None = None,
        counts_share: float | None = None,
        count_persons: bool = False,
        ordered: bool = False,
        fill: bool = False,
        salt: bytes = b"",
        version: str | None = None,
        at_least: int | None = None,
        weighting: str = "share",
        choose: str | None = None,
        measure: MeasureLike = "persons",
        max_per_item: BoundLike | None = None,
        max_total: Amount | None = None,
        order: Literal["most", "least"] = "most",
        rise_from: WhereLike = (),
    ) -> Question:
        """The question with these keywords, asked under these terms of a budget.

        What each keyword means stands in docs/reference/package.md.
        """
        named = item if isinstance(item, str | Expression) else tuple(item)
        public = None if domain is None else domain_of(domain)
        if not isinstance(mechanism, str):
            check_object(mechanism)
        kept = conditions(where) if where else ()
        usual = measure == "persons" and max_per_item is None and max_total is None
        ranked = None if usual else measure_of(measure, max_per_item, max_total)
        cut = max_items
        if ranked is not None and ranked.total and isinstance(max_items, int | None):
            cut = min(max_items or MOST_ITEMS, MOST_ITEMS)
        counted = CountQuery(named, person, 1, kept, cut, public, salt=salt, measure=ranked)
        if terms is not None and terms.kind == "metered":
            if groups is not None:
                raise InvalidParameter(
                    "the dataset's budget is metered, for one list at a time; groups need a "
                    "flexible one"
                )
            if epsilon is not None:
                raise InvalidParameter(
                    f"epsilon={epsilon} must be left out: the dataset's budget is metered, with "
                    f"{float(terms.price):.4g} per item"
                )
            if counts:
                raise InvalidParameter(
                    "counts=True needs a budget that is not metered; leave it out"
                )
            epsilon, delta = down(terms.epsilon), down(terms.delta)
        if epsilon is None:
            raise InvalidParameter("epsilon is missing; 1 is a common choice")
        known_as = USUAL_DELTA if delta is None else getattr(delta, "known_as", None)
        left_out = delta is None
        if delta is None:
            # An object has a delta of its own, which is no part of a budget's.
            own = not isinstance(mechanism, str)
            kind = (k == "all" or at_least is not None, bool(counts))
            delta = USUAL_DELTA if own else usual_delta(terms, epsilon, groups, *kind)
        given = (k, epsilon, delta, k_bar, max_items, at_least, weighting, choose)
        try:
            numbers, strong = _numbers(*given)
        except TypeError:  # no key of a cache: a list, say; the checks find the words
            numbers, strong = _numbers.__wrapped__(*given)
        if not strong:
            check_strength(numbers.epsilon, numbers.delta)
        if ordered is not False or fill is not False:
            numbers = numbers.wishing(ordered=ordered, fill=fill)
        if order != "most":
            numbers = numbers.in_order(order)
        if ranked is not None:
            bounds, total = ranked.bounds, ranked.total
            numbers = numbers.ranked_by(Scores.of(ranked))
            if (bounds or total) and not isinstance(mechanism, str):
                raise InvalidParameter(
                    "a mechanism of your own needs one public max_per_item, without max_total; "
                    "or name a mechanism"
                )
            if counts:
                raise InvalidParameter(
                    "counts=True counts people, and the items are ranked by another measure; "
                    "leave one of them out"
                )
        earlier = conditions(rise_from) if rise_from else ()
        if earlier:
            metered = terms is not None and terms.kind == "metered"
            alone = groups is None and not metered and not counts
            numbers = rising(numbers, counted, mechanism, alone)
        noisy = _counts_budget(counts_part, counts_share) if counts else None
        if count_persons and not counts:
            raise InvalidParameter("count_persons=True needs counts=True; add counts=True")
        extras = (version, count_persons, earlier, left_out, known_as)
        return cls(counted, numbers, mechanism, noisy, groups, *extras)

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected."""
        return _unit(self.counted.person, self.counted.max_items)

    @property
    def item(self) -> str:
        """What is ranked, in words."""
        named = self.counted.item
        if isinstance(named, Expression):
            return named.text
        return named if isinstance(named, str) else ", ".join(map(str, named))

    def queries(self, rows: int) -> list[CountQuery]:
        """What the source is asked, list by list."""
        counted, groups = replace(self.counted, rows=rows), self.groups
        if self.rise_from:
            return [counted, replace(counted, where=self.rise_from)]
        if groups is None:
            return [counted]
        if not groups.disjoint:
            return [counted.only(groups.only(value)) for value in groups.values]
        assert isinstance(groups.by, str)
        return [
            replace(counted, home=GroupAssignment(groups.by, groups.values, value))
            for value in groups.values
        ]

    def fingerprint(self) -> Fingerprint:
        """All that an answer's law depends on but the data and the source's own name.

        The mechanism is the one that was asked for: "auto" stays the same question when a later
        version answers it by another rule.
        """
        numbers, named = self.numbers.plain_values, self.mechanism
        measure = self.counted.measure
        rows = measure is not None and measure.column is None
        found: Fingerprint = {
            "form": FORM,
            "measure": "persons" if measure is None else "rows" if rows else "sum",
            "counted": self.counted.fingerprint(),
            "k": numbers["k"],
            "k_bar": numbers["k_bar"],
            "epsilon": numbers["epsilon"],
            # Left out it is the same question, whatever the rule for it gives.
            "delta": numbers["delta"] if self.known_as is None else self.known_as,
            "mechanism": named if isinstance(named, str) else mechanism_fingerprint(named),
            "counts_share": None if self.counts is None else self.counts.fingerprint(),
            "groups": None if self.groups is None else self.groups.fingerprint(),
            "adjacency": self.unit.adjacency,
            **{
                name: numbers[name]
                for name in ("at_least", "weighting", "order")
                if name in numbers
            },
            **{name: True for name in ("ordered", "fill") if name in numbers},
        }
        # What nobody asked for is left out: an older answer to the same question is found.
        if named == "auto" and "choose" in numbers:
            found = found | {"choose": numbers["choose"]}
        if self.count_persons:
            found = found | {"persons": True}
        if self.rise_from:
            found = found | {"rise_from": [one.fingerprint() for one in self.rise_from]}
        # With k_bar left out a mechanism may look deeper than the default of 20·k.
        if self.numbers.k_bar_given and self.numbers.k_bar == self.numbers.usual_k_bar:
            found = found | {"k_bar_given": True}
        return found


def _counts_budget(part: float | None, share: float | None) -> CountsBudget:
    """The counts' part of the budget, by its new name or by the old one."""
    if share is None:
        return CountsBudget(part)
    if part is not None:
        raise InvalidParameter("pass counts_part alone: counts_share is its older form")
    warnings.warn(
        "counts_share, a share of epsilon, will be dropped; pass counts_part, a part of the "
        "budget in which 0.15 is usual, or leave it out",
        DeprecationWarning,
        stacklevel=4,
    )
    return CountsBudget(share, of_epsilon=True)
