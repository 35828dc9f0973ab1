"""A question as public numbers: how many items, at what price, under which conditions.

>>> Question.of(k=10, epsilon=1).k_bar
200
>>> Question.of(k="auto", epsilon=1).k_bar
100
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, Protocol, SupportsIndex

from topsecret.accounting.weak_privacy import refuse_void
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down, exact

K_BAR_FACTOR = 20
"""k_bar defaults to 20·k, except where a mechanism has a rule of its own (``tested``). On nine real
datasets it was within .03 of the best recall in 33 of 36 settings, where k_bar = k loses up to .83
(docs/results/k-bar.md). A public rule: it looks at k alone."""

K_BAR_FOR_AUTO = 100
"""With k="auto" the drop is looked for among this many leading items."""

LARGEST_K_BAR = 1_000_000

Length = int | Literal["auto", "all"]
Weighting = Literal["share", "cap"]
Choose = Literal["private", "public"]

CHOOSE: Choose = "private"
"""How "auto" chooses where nobody says it. It is in no fingerprint: "auto" stays the same question
when its rule changes, so that answers from before there was a choice are found."""


class Measured(Protocol):
    """A measure, as a source clips it."""

    @property
    def sensitivity(self) -> int: ...  # noqa: D102
    @property
    def per_unit(self) -> int: ...  # noqa: D102
    @property
    def noun(self) -> str: ...  # noqa: D102
    @property
    def bounds(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def total(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Scores:
    """What items are ranked by where it is not people: whole units that a person adds up to."""

    sensitivity: int
    """How many units one person moves a score by, at most."""
    per_unit: int
    """How many units one whole is."""
    noun: str
    """What wholes are of, in words."""
    bounds: tuple[int, ...] = ()
    """The sensitivities of which a private choice takes one; none where it is fixed."""
    total: int = 0
    """The length of the vector that one person adds, at most; 0 where it is not bounded."""

    @classmethod
    def of(cls, measure: Measured) -> Scores:
        """The public numbers of a measure."""
        given = measure.sensitivity, measure.per_unit, measure.noun
        return cls(*given, measure.bounds, measure.total)

    def in_words(self, lead: int) -> str:
        """A multiple of what one person adds at most to one item, in wholes, rounded up.

        >>> Scores(750, 100, "of price").in_words(21)
        '158 of price'
        >>> Scores(50, 1, "rows", (5, 50)).in_words(21)
        '21 times the bound'
        """
        if self.bounds:
            return f"{lead:,} times the bound"
        return f"{self.wholes(lead):,} {self.noun}"

    def wholes(self, lead: int) -> int:
        """A multiple of what one person adds at most to one item, in wholes, rounded up."""
        return -(-lead * self.sensitivity // self.per_unit)


@dataclass(frozen=True)
class Question:
    """What is asked, in public numbers alone. Make one with :meth:`of`, which checks them."""

    k: Length
    """How many items; "auto" for as many as the counts set apart, "all" for all that are safe."""
    epsilon: float
    """Of the whole answer."""
    delta: float
    """Of the whole answer."""
    k_bar: int
    """How many leading items may be looked at."""
    max_items: int | None = None
    """How many items one person may touch; None for any number."""
    domain_size: int | None = None
    """How many items the public domain has; None when only observed items can be named."""
    k_bar_given: bool = False
    """Whether ``k_bar`` was asked for; otherwise a mechanism may know a better one."""
    at_least: int | None = None
    """Name items that surely have so many people; None for any."""
    weighting: Weighting = "share"
    """How people with many items count where people are weighted."""
    ordered: bool = False
    """Whether the order of the items must be part of the answer."""
    fill: bool = False
    """Whether an answer of fewer than k items is completed at random from the public domain."""
    choose: Choose = CHOOSE
    """Whether "auto" may choose by a noisy look at the data, for a part of the budget."""
    scores: Scores | None = None
    """What the items are ranked by; None for distinct people."""
    least: bool = False
    """Whether the items with the least are asked for, of a public domain."""
    two_periods: bool = False
    """Whether items are ranked by their rise, of those that lead in one of two periods."""

    @classmethod
    def of(
        cls,
        *,
        k: SupportsIndex | str,
        epsilon: Number,
        delta: Number = 1e-6,
        k_bar: SupportsIndex | None = None,
        max_items: SupportsIndex | None = None,
        domain_size: SupportsIndex | None = None,
        at_least: SupportsIndex | None = None,
        weighting: str = "share",
        ordered: bool = False,
        fill: bool = False,
        choose: str | None = None,
    ) -> Question:
        """The question, its parameters checked and ε and δ rounded down to floats."""
        length, depth = _sizes(k, k_bar)
        budget, failure = _budget(epsilon, delta)
        cap = None if max_items is None else whole("max_items", max_items)
        if cap is not None and cap < 1:
            raise InvalidParameter(f"max_items={cap} must be at least 1; raise it or leave it out")
        persons = None if at_least is None else whole("at_least", at_least)
        if persons is not None and persons < 1:
            raise InvalidParameter(f"at_least={persons} must be at least 1; or leave it out")
        if weighting not in ("share", "cap"):
            raise InvalidParameter(f"weighting={weighting!r} must be 'share' or 'cap'")
        if weighting == "cap" and cap is None:
            raise InvalidParameter("weighting='cap' needs the cap; pass max_items=5, say")
        how: Weighting = "cap" if weighting == "cap" else "share"
        asked = cls(length, budget, failure, depth, cap, None, k_bar is not None, persons, how)
        asked = asked.wishing(ordered=ordered, fill=fill).choosing(choose)
        return asked if domain_size is None else asked.within(whole("domain_size", domain_size))

    def choosing(self, choose: str | None) -> Question:
        """The same question, its mechanism chosen in this way where "auto" is asked for."""
        if choose not in (None, "private", "public"):
            raise InvalidParameter(f"choose={choose!r} must be 'private' or 'public'")
        known: dict[str | None, Choose] = {"private": "private", "public": "public"}
        return replace(self, choose=known.get(choose, CHOOSE))

    def within(self, domain_size: int) -> Question:
        """The same question about a public domain of so many items."""
        least = {"auto": 2, "all": 1}[self.k] if isinstance(self.k, str) else self.k
        if domain_size < least:
            raise InvalidParameter(
                f"domain_size={domain_size} must be at least {least}; lower k or leave it out"
            )
        return replace(self, domain_size=domain_size)

    def wishing(self, *, ordered: bool, fill: bool) -> Question:
        """The same question with what is wished of its answer."""
        for name, value in (("ordered", ordered), ("fill", fill)):
            if not isinstance(value, bool):
                raise InvalidParameter(f"{name}={value!r} must be True or False")
        return replace(self, ordered=ordered, fill=fill) if ordered or fill else self

    def in_order(self, order: str) -> Question:
        """The same question about the items with the most, or with the least."""
        if order not in ("most", "least"):
            raise InvalidParameter(f"order={order!r} must be 'most' or 'least'")
        return replace(self, least=order == "least")

    def ranked_by(self, scores: Scores | None) -> Question:
        """The same question about other scores; None for distinct people."""
        return self if scores == self.scores else replace(self, scores=scores)

    def of_two_periods(self) -> Question:
        """The same question about the rises of what leads in one of two periods."""
        return replace(self, two_periods=True)

    @property
    def sensitivity(self) -> int:
        """How far one person moves a score, in its units."""
        return 1 if self.scores is None else self.scores.sensitivity

    @property
    def bounds(self) -> tuple[int, ...]:
        """The bounds on one person of which a private choice takes one; none where it is fixed."""
        return () if self.scores is None else self.scores.bounds

    @property
    def total(self) -> int:
        """The length of what one person adds, at most, in units; 0 where it is not bounded."""
        return 0 if self.scores is None else self.scores.total

    @cached_property
    def length(self) -> int:
        """k as a number."""
        if isinstance(self.k, str):
            raise InvalidParameter(f"k={self.k!r} has no length beforehand; pass k=10, say")
        return self.k

    def at(self, epsilon: float) -> Question:
        """The same question at another price."""
        return replace(self, epsilon=epsilon)

    @cached_property
    def usual_k_bar(self) -> int:
        """k̄ where it was left out."""
        return _sizes(self.k, None)[1]

    def to_dict(self) -> dict[str, int | float | str | None]:
        """Everything as plain values; what was not asked for is left out."""
        return dict(self.plain_values)

    @cached_property
    def plain_values(self) -> Mapping[str, int | float | str | None]:
        """The same, to be read alone."""
        wishes = {name: True for name in ("ordered", "fill") if getattr(self, name)}
        found = {
            "k": self.k,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "k_bar": self.k_bar,
            "max_items": self.max_items,
            "domain_size": self.domain_size,
            **({} if self.at_least is None else {"at_least": self.at_least}),
            **({} if self.weighting == "share" else {"weighting": self.weighting}),
            **({} if self.choose == CHOOSE else {"choose": self.choose}),
            **({} if self.scores is None else {"sensitivity": self.sensitivity}),
            **({"bounds": len(self.bounds)} if self.bounds else {}),
            **({"total": self.total} if self.total else {}),
            **({"order": "least"} if self.least else {}),
            **wishes,
        }
        return MappingProxyType(found)


def whole(name: str, value: SupportsIndex | str) -> int:
    """A whole number, or an error that shows how to write one."""
    if not isinstance(value, bool | str):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise InvalidParameter(f"{name}={value!r} must be a whole number; write {name}=10")


def _sizes(k: SupportsIndex | str, k_bar: SupportsIndex | None) -> tuple[Length, int]:
    if k == "auto":
        return "auto", K_BAR_FOR_AUTO if k_bar is None else _depth(k_bar, 1, "1")
    if k == "all":
        return "all", 1 if k_bar is None else _depth(k_bar, 1, "1")
    if isinstance(k, str):
        raise InvalidParameter(f"k={k!r} must be a whole number, 'auto' or 'all'; write k=10")
    wanted = whole("k", k)
    if wanted < 1:
        raise InvalidParameter(f"k={wanted} must be at least 1; ask for one item or more")
    if k_bar is not None:
        return wanted, _depth(k_bar, wanted, f"k={wanted}")
    if wanted * K_BAR_FACTOR > LARGEST_K_BAR:
        raise InvalidParameter(
            f"k={wanted} must be at most {LARGEST_K_BAR // K_BAR_FACTOR}; ask for fewer items"
        )
    return wanted, wanted * K_BAR_FACTOR


def _depth(k_bar: SupportsIndex, least: int, shown: str) -> int:
    looked_at = whole("k_bar", k_bar)
    if looked_at < least:
        fix = "raise k_bar or lower k" if shown.startswith("k=") else "raise k_bar"
        raise InvalidParameter(f"k_bar={looked_at} must be at least {shown}; {fix}")
    if looked_at > LARGEST_K_BAR:
        raise InvalidParameter(f"k_bar={looked_at} must be at most {LARGEST_K_BAR}; lower k_bar")
    return looked_at


def _budget(epsilon: Number, delta: Number) -> tuple[float, float]:
    budget, failure = _spendable("epsilon", epsilon), _spendable("delta", delta)
    if budget <= 0:
        raise InvalidParameter(f"epsilon={epsilon} must be above 0; 1 is a common choice")
    if not 0 <= failure < 1:
        raise InvalidParameter(
            f"delta={delta} must be at least 0 and below 1; "
            "1e-6 is the default, well below one over the number of people"
        )
    refuse_void(delta)
    return budget, failure


def _spendable(name: str, value: Number) -> float:
    """The number as a float, rounded down: never spend more than was given."""
    fix = f"write {name}={'1e-6' if name == 'delta' else '0.5'}"
    if isinstance(value, str | bytes | bool):
        raise InvalidParameter(f"{name}={value!r} must be a number; {fix}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidParameter(f"{name}={value} must be a finite number; {fix}")
    return down(exact(value, name))
