"""Which mechanisms can answer a question, and how each is made to spend its budget.

>>> question = Question.of(k=10, epsilon=1.0)
>>> prepared = prepare("limited-domain", question)
>>> prepared.mechanism.loss.epsilon(question.delta) <= question.epsilon
True
>>> applicable(Question.of(k="auto", epsilon=1.0))
('stable',)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points

from topsecret.calibration import (
    chosen,
    from_outside,
    public_domain,
    rises,
    stability,
    unknown_domain,
    weighted,
)
from topsecret.calibration.prepared import Prepared
from topsecret.calibration.private_bound import at_prices, with_private_bound
from topsecret.calibration.question import Question
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.exact.rounding import Number
from topsecret.mechanisms import LimitedDomain, Mechanism, OptimalThreshold

__all__ = [
    "NAMES",
    "PUBLIC_DOMAIN",
    "Entry",
    "Prepared",
    "Question",
    "applicable",
    "paid_by_symbol",
    "prepare",
    "prepare_at",
    "refusal",
]


@dataclass(frozen=True, slots=True)
class Entry:
    """A mechanism by the name that users type."""

    build: Callable[[Question], Prepared]
    """Makes the mechanism for a question."""
    needs_domain: bool = False
    """Whether it needs a public list of all items."""
    no_domain: bool = False
    """Whether it is for an unknown domain alone."""
    needs_cap: bool = False
    """Whether it needs a cap on one person's items."""
    at_price: Callable[[Question, float, float], Prepared] | None = None
    """For those that pay by the symbol: how to build it at a fixed price and delta."""
    spare: int = 0
    """How many more leading items than k it must be able to look at, in fifths of k, at least."""
    chooses_k: bool = False
    """Whether it is for k="auto" alone."""
    weighs: bool = False
    """Whether people are weighted: it can name all safe items, or those of many people."""
    epsilons: tuple[float, float] = (0.0, math.inf)
    """The range in which its calibration works."""
    pure: bool = False
    """Whether it can answer without a delta."""
    ordered: bool = True
    """Whether the order of the items is part of its answer."""
    fills: bool = False
    """Whether it names k items, or can be told to."""
    measures: bool = False
    """Whether it ranks by rows and sums, too: scores that a person moves by more than one."""
    chooses_bound: bool = False
    """Whether what one person moves may be chosen privately."""
    least: bool = False
    """Whether it can name the items with the least."""


_ENTRIES: dict[str, Entry] = {
    "tested": Entry(
        unknown_domain.tested,
        spare=1,
        epsilons=(1e-4, 10.0),
        measures=True,
        chooses_bound=True,
    ),
    "limited-domain": Entry(
        unknown_domain.limited_domain,
        at_price=unknown_domain.limited_domain_at,
        measures=True,
        chooses_bound=True,
    ),
    "limited-domain-laplace": Entry(unknown_domain.limited_domain_laplace, needs_cap=True),
    "optimal-threshold": Entry(
        unknown_domain.optimal_threshold, at_price=unknown_domain.optimal_threshold_at, spare=1
    ),
    "fixed-threshold": Entry(unknown_domain.fixed_threshold, ordered=False),
    "top-stable": Entry(unknown_domain.top_stable, ordered=False),
    "weighted": Entry(weighted.weighted, weighs=True, epsilons=(1e-4, 50.0)),
    "tested-or-weighted": Entry(
        chosen.tested_or_weighted, no_domain=True, spare=1, epsilons=(1e-4, 10.0), measures=True
    ),
    "stable-fixed-k": Entry(stability.stable_fixed_k, ordered=False),
    "stable": Entry(stability.stable, chooses_k=True, ordered=False),
    "pruned": Entry(
        public_domain.pruned, needs_domain=True, fills=True, measures=True, chooses_bound=True
    ),
    "gumbel": Entry(
        public_domain.gumbel,
        needs_domain=True,
        fills=True,
        measures=True,
        least=True,
        chooses_bound=True,
    ),
    "permute-and-flip": Entry(
        public_domain.permute_and_flip,
        needs_domain=True,
        pure=True,
        fills=True,
        measures=True,
        least=True,
    ),
    "oneshot-exponential": Entry(
        public_domain.oneshot_exponential,
        needs_domain=True,
        pure=True,
        fills=True,
        measures=True,
        least=True,
    ),
    "oneshot-laplace": Entry(
        public_domain.oneshot_laplace, needs_domain=True, pure=True, ordered=False, fills=True
    ),
    "canonical-set": Entry(
        public_domain.canonical_set,
        needs_domain=True,
        pure=True,
        ordered=False,
        fills=True,
        epsilons=(1e-6, 1e6),
    ),
    "oneshot-private-length": Entry(
        public_domain.oneshot_private_length, needs_domain=True, pure=True, epsilons=(1e-6, 1e6)
    ),
}

NAMES = tuple(_ENTRIES)
"""All mechanisms by the names that users type."""

PUBLIC_DOMAIN = frozenset(name for name, entry in _ENTRIES.items() if entry.needs_domain)
"""Those that may name any item of a public domain."""


def applicable(question: Question) -> tuple[str, ...]:
    """The mechanisms that can answer the question, by public conditions alone."""
    return tuple(name for name in NAMES if refusal(name, question) is None)


@lru_cache(maxsize=256)
def prepare(mechanism: str | Mechanism, question: Question) -> Prepared:
    """The mechanism of this name, calibrated to the question's (ε, δ), or the caller's own.

    *Guarantee.* ``mechanism.loss.epsilon(delta) <= epsilon``, compared without tolerance.
    """
    if question.two_periods:
        prepared = rises.leading_rises(question)
    elif isinstance(mechanism, str):
        reason = refusal(mechanism, question)
        if reason is not None:
            raise reason
        build = _entry(mechanism).build
        prepared = with_private_bound(question, build) if question.bounds else build(question)
    else:
        prepared = from_outside.of_object(mechanism, question)
    if not prepared.mechanism.loss.keeps_to(question.epsilon, question.delta):
        raise InvalidParameter(
            f"epsilon={question.epsilon} with delta={question.delta} cannot be met by "
            f"{prepared.name}; raise epsilon or delta, or lower k"
        )
    return prepared


def _entry(name: str) -> Entry:
    if name in _ENTRIES:
        return _ENTRIES[name]
    registered = _registered()
    if name in registered:
        return registered[name]
    known = ", ".join((*NAMES, *registered))
    raise InvalidParameter(f"mechanism={name!r} must be one of: auto, {known}")


@lru_cache(maxsize=1)
def _registered() -> dict[str, Entry]:
    """What other packages registered; they cannot replace a mechanism of ours."""
    points = entry_points(group=from_outside.GROUP)
    loaded = {point.name: point.load() for point in points if point.name not in _ENTRIES}
    return {name: entry for name, entry in loaded.items() if isinstance(entry, Entry)}


def prepare_at(
    name: str,
    question: Question,
    price: float,
    share: float,
    price_of_the_bound: float | None = None,
) -> Prepared:
    """The mechanism at a price per symbol and a delta per query that others fixed.

    The question's (ε, δ) is the whole budget; what this query costs is ``mechanism.loss``.

    Parameters: ``name``: as users type it; ``question``: what is asked; ``price``: the epsilon of
    each symbol; ``share``: the delta of its threshold; ``price_of_the_bound``: the epsilon of a
    private choice of the bound, which a metered budget does not have.
    """
    metered = [known for known, entry in _ENTRIES.items() if entry.at_price is not None]
    if name not in metered:
        raise InvalidParameter(
            f"mechanism={name!r} must be {' or '.join(map(repr, metered))}: "
            "the dataset's budget is metered"
        )
    reason = refusal(name, question)
    if question.bounds and price_of_the_bound is None:
        reason = InvalidParameter(
            "a bound is chosen from a budget that is not metered; pass one max_per_item"
        )
    if reason is not None:
        raise reason
    build = _ENTRIES[name].at_price
    assert build is not None
    if price_of_the_bound is not None:
        return at_prices(question, price_of_the_bound, lambda units: build(units, price, share))
    return build(question, price, share)


def paid_by_symbol(prepared: Prepared) -> tuple[int, Number, Number] | None:
    """The most symbols of an answer, the price of each and the delta; None if paid in full."""
    mechanism = prepared.mechanism
    if isinstance(mechanism, LimitedDomain | OptimalThreshold):
        return mechanism.k, mechanism.epsilon_per_pick, mechanism.delta
    return None


def refusal(name: str, question: Question) -> InvalidParameter | None:
    """Why the mechanism cannot answer, or None."""
    entry = _entry(name)
    measured = name == "weighted" if question.total else entry.measures
    plain = not isinstance(question.k, str) and question.at_least is None
    if question.scores is not None and not (measured and plain):
        return _not_measured(name, question)
    if question.bounds and (question.delta == 0 or not entry.chooses_bound):
        known = ", ".join(known for known, entry in _ENTRIES.items() if entry.chooses_bound)
        return InvalidParameter(
            "max_per_item is to be chosen privately, which needs a delta above 0 and one of: "
            f"{known}; pass one public max_per_item"
        )
    if question.least and not (entry.least and question.domain_size):
        return _not_least(name, question)
    if question.delta == 0 and not entry.pure:
        return _without_delta(name, question)
    if question.ordered and not entry.ordered:
        return InvalidParameter(
            f"mechanism={name!r} answers a set, and ordered=True asks for an order; "
            "leave ordered out, or name another mechanism"
        )
    if question.fill and not entry.fills:
        return InvalidParameter(
            f"mechanism={name!r} cannot complete its answer at random; leave fill out, or use "
            "mechanism='canonical-set' with a public domain"
        )
    if entry.chooses_k or question.k == "auto":
        if entry.chooses_k and question.k == "auto":
            return None
        if entry.chooses_k:
            return InvalidParameter(f"mechanism={name!r} chooses k itself; pass k='auto'")
        return InvalidParameter(
            f"mechanism={name!r} needs a number of items; pass k=10, say, "
            "or mechanism='stable', which chooses it"
        )
    if not entry.weighs and (question.k == "all" or question.at_least is not None):
        asked = "k='all'" if question.k == "all" else f"at_least={question.at_least}"
        return InvalidParameter(
            f"{asked} needs mechanism='weighted', and {name!r} was given; leave the mechanism out"
        )
    if question.k == "all" and question.domain_size is not None and question.at_least is None:
        return InvalidParameter(
            "k='all' would name the whole public domain; pass k=10, say, or at_least=100"
        )
    if entry.needs_domain and question.domain_size is None:
        return DomainRequired(
            f"mechanism={name!r} names any item of a public domain, and none was given; "
            "give the domain, or use mechanism='tested', which names observed items only"
        )
    if entry.no_domain and question.domain_size is not None:
        return InvalidParameter(
            f"mechanism={name!r} is for an unknown domain, and one was given; leave the mechanism "
            "out, or the domain"
        )
    if entry.needs_cap and question.max_items is None:
        return InvalidParameter(
            f"mechanism={name!r} needs a cap on the items of one person; pass max_items=5, say"
        )
    if entry.needs_cap and question.max_items is not None and question.max_items > question.k_bar:
        return InvalidParameter(
            f"max_items={question.max_items} must be at most k_bar={question.k_bar} "
            f"for mechanism={name!r}; raise k_bar or lower max_items"
        )
    lowest, highest = entry.epsilons
    if not lowest <= question.epsilon <= highest:
        return InvalidParameter(
            f"epsilon={question.epsilon} must lie between {lowest:g} and {highest:g} "
            f"with mechanism={name!r}; change epsilon, or use mechanism='limited-domain'"
        )
    if question.k == "all":
        return None
    least = question.length + -(-question.length * entry.spare // 5)
    if question.k_bar < least:
        return InvalidParameter(
            f"k_bar={question.k_bar} must be at least {least} for k={question.k} "
            f"with mechanism={name!r}; raise k_bar or lower k"
        )
    return None


def _not_measured(name: str, question: Question) -> InvalidParameter:
    """Why a mechanism cannot rank by rows or sums."""
    asked = f"k={question.k!r}" if isinstance(question.k, str) else f"at_least={question.at_least}"
    if isinstance(question.k, str) or question.at_least is not None:
        return InvalidParameter(f"{asked} needs measure='persons'; pass k=10, say, alone")
    if question.total:
        return InvalidParameter(
            f"max_total needs mechanism='weighted', and {name!r} was given; leave one of them out"
        )
    if name == "weighted":
        return InvalidParameter(
            "mechanism='weighted' ranks by rows and sums with a bound on all that one person adds; "
            "pass max_total, or leave the mechanism out"
        )
    known = ", ".join(known for known, entry in _ENTRIES.items() if entry.measures)
    return InvalidParameter(
        f"mechanism={name!r} ranks by people alone; leave measure out, or use one of: {known}"
    )


def _not_least(name: str, question: Question) -> InvalidParameter:
    """Why a mechanism cannot name the items with the least."""
    if question.domain_size is None:
        return DomainRequired(
            "order='least' needs a public domain: of items that were only seen in the data, those "
            "with the least are those that one person has; give the domain"
        )
    known = ", ".join(known for known, entry in _ENTRIES.items() if entry.least)
    return InvalidParameter(
        f"mechanism={name!r} names the items with the most; leave order out, or use one of: {known}"
    )


def _without_delta(name: str, question: Question) -> InvalidParameter:
    """Why a mechanism cannot answer with delta = 0."""
    if isinstance(question.k, str):
        return InvalidParameter(
            f"k={question.k!r} needs a delta above 0; pass delta=1e-6, or k=10, say"
        )
    if question.domain_size is None:
        return DomainRequired(
            "delta=0 needs a public domain: to name an item that was only seen in the data, "
            "delta must be above 0; give the domain, or pass delta=1e-6"
        )
    return InvalidParameter(
        f"mechanism={name!r} needs a delta above 0; pass delta=1e-6, or use one of: "
        f"{', '.join(known for known, entry in _ENTRIES.items() if entry.pure)}"
    )
