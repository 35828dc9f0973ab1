"""Budgets: how a total (ε, δ) becomes amounts that queries are charged against.

>>> budget = Metered.of(epsilon=1, delta=1e-6, queries=10, picks=50)
>>> 0.0645 < budget.price < 0.0655
True
>>> Flexible.of(epsilon=1, delta=1e-6).guarantee
(1.0, 1e-06)

A budget is a pure value: it turns a query's ``Price`` into the amounts to reserve before the data
are read (``worst``) and the amounts to charge once the answer is known (``actual``). Admission is
a comparison of sums of these amounts with ``limits``, all exact. Everything here depends on public
numbers alone, ``actual`` on the published answer's length too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, Protocol

from topsecret.accounting import Loss, calibrate_picks, calibrate_zcdp, picks, zcdp
from topsecret.accounting.weak_privacy import check_strength
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, down, exact, precision, rounded_down, up
from topsecret.ledger.amounts import Amounts, on_grid, shortages

LONGEST_LIST = 1000
"""A flexible budget keeps slack for limited-domain queries of up to this many picks."""


@dataclass(frozen=True, slots=True)
class Picks:
    """Picks of one ε₀ that may end early and are paid for as far as they went.

    Guarantee asked of the mechanism: each symbol that it releases (an item, ⊥, a chosen k̄) is one
    ε₀-bounded-range step given the symbols before it, up to a factor of 1 + ``delta`` and one
    failure of ``delta`` per query: ``LimitedDomain`` and ``OptimalThreshold``, whose
    modules prove it.
    """

    count: int
    """The most symbols that an answer can have."""
    epsilon: Fraction
    """ε₀ of each symbol."""
    delta: Fraction
    """The failure of the query's threshold."""


@dataclass(frozen=True)
class Price:
    """What a query may cost: its loss in full, and the part of it that is paid by the symbol."""

    loss: Loss
    """The cost of the whole query."""
    picks: Picks | None = None
    """The part that is paid by the symbol; None if nothing is."""

    @cached_property
    def rho(self) -> float | None:
        """The zCDP of the loss, rounded up; None if it has none."""
        return self.loss.rho()

    def check_symbols(self, symbols: int) -> None:
        """An answer of this many symbols is one that the query can give."""
        if self.picks is not None and not 0 <= symbols <= self.picks.count:
            raise InvalidParameter(
                f"symbols={symbols} must lie between 0 and the {self.picks.count} that were asked"
            )


@dataclass(frozen=True, slots=True)
class PriceAtEpsilon:
    """The same query for another ε: what the advice of a refusal is found with."""

    epsilon: float
    """The ε that was asked for."""
    price_at: Callable[[float], Price]
    """What the query costs at an ε."""


class Budget(Protocol):
    """A total guarantee as amounts to be spent; ``Metered`` and ``Flexible`` are the kinds.

    Parameters: ``price``: what the query may cost; ``symbols``: how many symbols it released;
    ``left``: what is left of each resource; ``bargain``: the same query at another ε; None if it
    has no other price.
    """

    kind: ClassVar[str]

    @property
    def guarantee(self) -> tuple[float, float]:
        """(ε, δ) of everything that the budget will ever admit, rounded up."""
        ...

    @property
    def limits(self) -> Amounts:
        """What there is to spend."""
        ...

    def worst(self, price: Price) -> Amounts:
        """What to reserve before the data are read."""
        ...

    def actual(self, price: Price, symbols: int) -> Amounts:
        """What an answer of so many symbols costs; never more than ``worst``."""
        ...

    def advice(self, left: Amounts, bargain: PriceAtEpsilon | None) -> str:
        """What would fit, in words."""
        ...

    def holds(self) -> bool:
        """Whether the accountant proves the guarantee from the limits."""
        ...

    def to_record(self) -> dict[str, str]:
        """The exact terms as text."""
        ...


@dataclass(frozen=True, slots=True)
class Metered:
    """A fixed price per pick and a fixed δ per query; so many picks, so many queries.

    Parameters, beside those of ``Budget``: ``epsilon``: of everything that is ever answered;
    ``delta``: of everything that is ever answered; ``queries``: how many queries there may be;
    ``picks``: how many items, and endings of lists, may be released.

    *Guarantee* (docs/proofs/many-queries.md, section 2; Durfee & Rogers 2019, Thm 2). Queries are
    ``LimitedDomain`` or ``OptimalThreshold`` with this price and this δ. A query is charged one
    pick per symbol that it released, and one query. However the queries depend on earlier answers
    and wherever they stop, with at most K ``picks`` and L ``queries`` in all the sequence is
    (ε∗(K, δ − L·δ_q) + K·ln(1 + δ_q), δ)-DP, ε∗ the optimal bound for K picks.

    *Why refunds are safe:* the symbols of all queries in the order of their reservations are one
    sequence of at most K adaptively chosen picks; a query that ended early leaves its picks to
    later ones, which is a choice that depends on released symbols alone.
    """

    kind: ClassVar[Literal["metered"]] = "metered"
    epsilon: Fraction
    """Of everything that is ever answered, as the owner stated it."""
    delta: Fraction
    """Of everything that is ever answered, as the owner stated it."""
    queries: int
    """How many queries there may be in all."""
    picks: int
    """How many items, and endings of lists, may be released in all."""
    price: Fraction
    """ε₀ of each pick."""
    query_delta: Fraction
    """δ of each query's threshold."""

    @classmethod
    def of(cls, *, epsilon: Number, delta: Number, queries: int, picks: int) -> Metered:
        """The largest price with which K picks and L queries keep to (ε, δ).

        Half of δ goes to the L thresholds, half to the composition. With k̄ = 20K the threshold is
        within 1% of that of ``calibrate_limited_domain``'s split for (K, L) = (5, 5), (50, 10) and
        (200, 20).
        """
        total, failure = _total(epsilon, delta)
        for name, value in (("queries", queries), ("picks", picks)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidParameter(f"{name}={value!r} must be a whole number, 1 or more")
        if picks < queries:
            raise InvalidParameter(
                f"picks={picks} must be at least queries={queries}: every query costs one or more"
            )
        share = Fraction(down(failure / (2 * queries)))
        room = total - _slack(picks, share)
        price = 0.0
        if share > 0 and room > 0:
            price = calibrate_picks(picks, room, failure - queries * share)
        if price <= 0:
            raise InvalidParameter(
                f"epsilon={float(total)} with delta={float(failure)} is too small to be divided "
                f"among {picks} picks; raise it or lower picks"
            )
        return cls(total, failure, queries, picks, Fraction(price), share)

    @property
    def guarantee(self) -> tuple[float, float]:
        """(ε, δ) as the owner stated them, rounded up."""
        return up(self.epsilon), up(self.delta)

    @property
    def limits(self) -> Amounts:
        """K picks and L queries."""
        return {"picks": Fraction(self.picks), "queries": Fraction(self.queries)}

    def worst(self, price: Price) -> Amounts:
        """All the symbols that the query can release, and one query."""
        terms = self._terms(price)
        return {"picks": Fraction(terms.count), "queries": Fraction(1)}

    def actual(self, price: Price, symbols: int) -> Amounts:
        """The symbols that were released, and one query."""
        self._terms(price)
        price.check_symbols(symbols)
        return {"picks": Fraction(symbols), "queries": Fraction(1)}

    def _terms(self, price: Price) -> Picks:
        terms, loss = price.picks, price.loss
        # What is not one of these three is not paid by the symbol, whatever it is.
        paid = Loss(pick_runs=loss.pick_runs, failures=loss.failures, slack=loss.slack)
        if terms is None or loss != paid:
            raise InvalidParameter(
                "a metered budget pays for limited-domain picks alone; "
                "ask with mechanism='limited-domain', or open a flexible budget"
            )
        costs = loss.pick_runs == ((terms.count, terms.epsilon),) and loss.failures <= terms.delta
        # δ is at least ln(1 + δ); both sums may be rounded up to a float.
        costs = costs and loss.slack <= exact(up(terms.count * terms.delta))
        if not costs or terms.epsilon > self.price or terms.delta > self.query_delta:
            raise InvalidParameter(
                f"epsilon_per_pick={float(terms.epsilon)} and threshold_delta={float(terms.delta)} "
                f"must be at most the budget's {float(self.price)} and {float(self.query_delta)}"
            )
        return terms

    def advice(self, left: Amounts, bargain: PriceAtEpsilon | None) -> str:
        """The largest k that would fit."""
        items = int(left.get("picks", Fraction(0)))
        if left.get("queries", Fraction(0)) < 1 or items < 1:
            return "nothing more fits"
        return f"the largest k that fits is {items}"

    def holds(self) -> bool:
        """Whether the optimal accountant proves the guarantee."""
        rest = self.delta - self.queries * self.query_delta
        if rest < 0:
            return False
        proven = Fraction(picks(self.picks, self.price).epsilon(rest))
        return proven + _slack(self.picks, self.query_delta) <= self.epsilon

    def to_record(self) -> dict[str, str]:
        """The exact terms as text."""
        return _record(self, "epsilon", "delta", "queries", "picks", "price", "query_delta")


@dataclass(frozen=True, slots=True)
class Flexible:
    """An approximate-zCDP filter: every query brings its own parameters.

    Parameters, beside those of ``Budget``: ``epsilon``: of everything that is ever answered;
    ``delta``: of everything that is ever answered.

    *Guarantee* (docs/proofs/many-queries.md, section 3; Whitehouse, Ramdas, Rogers & Wu 2023).
    A query is admitted only if with it Σρ ≤ ``rho``, Σδ ≤ ``failures`` and Σslack ≤ ``slack``.
    Then the whole adaptive sequence is (ε, δ)-DP: ρ-zCDP gives (ε − slack, δ − failures).

    *Why the slacks s_i add beside it:* a limited-domain query's law is, on its good outcomes, P
    with (1 + δ)^(−k)·B ≤ P ≤ B for the law B of k bounded-range picks. Put B for P in all
    queries: B_h(S) ≤ e^x·B_h′(S) + δ′ by the filter, hence
    P_h(S) ≤ B_h(S) + Σδ_i ≤ e^(x + Σs_i)·P_h′(S) + δ′ + Σδ_i.

    *Why refunds are safe:* each pick is an adaptive step of ε₀²/8-zCDP of its own; picks that ⊥
    left undone were never taken. δ and slack are not given back.
    """

    kind: ClassVar[Literal["flexible"]] = "flexible"
    epsilon: Fraction
    """Of everything that is ever answered, as the owner stated it."""
    delta: Fraction
    """Of everything that is ever answered, as the owner stated it."""
    rho: Fraction
    """How much zCDP there is to spend."""
    failures: Fraction
    """How much δ of queries' thresholds there is to spend."""
    slack: Fraction
    """How much ε there is to spend beside zCDP, for the slacks of queries."""

    @classmethod
    def of(cls, *, epsilon: Number, delta: Number) -> Flexible:
        """The largest ρ: half of δ is for failures, the other half for the conversion.

        Slack is kept for queries of up to a thousand picks, Σ k·δ_i ≤ 1000·Σδ_i, but no more than
        a hundredth of ε.
        """
        total, failure = _total(epsilon, delta)
        failures = failure / 2
        slack = min(LONGEST_LIST * failures, total / 100)
        rho = Fraction(calibrate_zcdp(total - slack, failure - failures))
        if rho <= 0:
            raise InvalidParameter(f"epsilon={float(total)} is too small for a budget; raise it")
        return cls(total, failure, rho, failures, slack)

    @property
    def guarantee(self) -> tuple[float, float]:
        """(ε, δ) as the owner stated them, rounded up."""
        return up(self.epsilon), up(self.delta)

    @property
    def limits(self) -> Amounts:
        """ρ, failures and slack, each with a sum of its own."""
        return {"rho": self.rho, "delta": self.failures, "slack": self.slack}

    def worst(self, price: Price) -> Amounts:
        """The zCDP of the whole query, its failures and its slack."""
        if price.rho is None:
            raise InvalidParameter(
                "a flexible budget counts in zCDP, and this mechanism has none; choose another"
            )
        return {
            "rho": on_grid(Fraction(price.rho)),
            "delta": on_grid(price.loss.failures),
            "slack": on_grid(price.loss.slack),
        }

    def actual(self, price: Price, symbols: int) -> Amounts:
        """``worst`` less ε₀²/8 for every pick that was not taken."""
        price.check_symbols(symbols)
        amounts = dict(self.worst(price))
        if price.picks is not None:
            unused = price.picks.count - symbols
            amounts["rho"] = on_grid(amounts["rho"] - unused * price.picks.epsilon**2 / 8)
        return amounts

    def advice(self, left: Amounts, bargain: PriceAtEpsilon | None) -> str:
        """The largest ε that would fit, within 1% and rounded down."""
        best = 0.0 if bargain is None else self._largest(left, bargain)
        if best > 0:
            return f"the largest epsilon that fits is {rounded_down(best, 3)}"
        if left.get("rho", Fraction(0)) <= 0:
            return "nothing more fits"
        if left.get("delta", Fraction(0)) <= 0:
            return "its delta is used up; only questions without one fit, about a public domain"
        if bargain is None:
            return "a smaller epsilon or delta may fit"
        # Failures are a share of the question's delta.
        failures = self.worst(bargain.price_at(bargain.epsilon))["delta"]
        times = max(2, math.ceil(failures / left["delta"]))
        smaller = f"ask with a delta that is at least {times} times smaller"
        return f"no epsilon fits at this delta; {smaller}"

    def _largest(self, left: Amounts, bargain: PriceAtEpsilon) -> float:
        """ρ grows about as ε², and δ unless it was said: a few steps end just below the rest."""
        best, epsilon, delta = 0.0, bargain.epsilon, Fraction(1)
        for _ in range(8):
            try:
                needed = self.worst(bargain.price_at(epsilon))
            except InvalidParameter:
                return best
            moving = needed if needed["delta"] < delta else {"rho": needed["rho"]}
            parts = (left.get(name, Fraction(0)) / value for name, value in moving.items() if value)
            ratio, fits = float(min(parts)), not shortages(needed, left)
            best = max(best, epsilon) if fits else best
            if ratio <= 0 or (fits and ratio < 1.02) or (not fits and ratio >= 1):
                return best
            epsilon, delta = epsilon * 0.997 * math.sqrt(ratio), needed["delta"]
        return best

    def holds(self) -> bool:
        """Whether the conversion of zCDP proves the guarantee."""
        rest = self.delta - self.failures
        return rest > 0 and Fraction(zcdp(self.rho).epsilon(rest)) + self.slack <= self.epsilon

    def to_record(self) -> dict[str, str]:
        """The exact terms as text."""
        return _record(self, "epsilon", "delta", "rho", "failures", "slack")


def from_record(record: Mapping[str, str]) -> Metered | Flexible:
    """The budget with these terms, exactly as it was stored."""
    terms = {name: Fraction(value) for name, value in record.items() if name != "kind"}
    if record["kind"] == Metered.kind:
        queries, picked = int(terms.pop("queries")), int(terms.pop("picks"))
        return Metered(queries=queries, picks=picked, **terms)
    return Flexible(**terms)


def _record(budget: Metered | Flexible, *names: str) -> dict[str, str]:
    return {"kind": budget.kind} | {name: str(getattr(budget, name)) for name in names}


def _slack(count: int, delta: Fraction) -> Fraction:
    with precision(128):
        return Fraction(up(count * ball(delta).log1p()))


def _total(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    total, failure = exact(epsilon, "epsilon"), exact(delta, "delta")
    if total <= 0:
        raise InvalidParameter(f"epsilon={epsilon} must be above 0; 1 is a common choice")
    if not 0 < failure < 1:
        raise InvalidParameter(f"delta={delta} must be above 0 and below 1, such as 1e-6")
    check_strength(total, failure)
    return total, failure
