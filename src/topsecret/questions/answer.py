"""From a question to its answer: the one place where source, mechanism and ledger meet.

The order of events is fixed: calibrate to the budget, from public numbers alone; pay for the worst
case, or find the answer that was paid for before; ask the source for its counts; draw; store the
answer with what it cost; show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from topsecret.calibration.calibrated import calibrated
from topsecret.calibration.counts import CountsBudget
from topsecret.calibration.prepared import Calibrated
from topsecret.calibration.question import Question as Numbers
from topsecret.calibration.rises import LEADING_RISES
from topsecret.calibration.words import scaled_down
from topsecret.counts.clip import Clip
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import UNIT
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import down, exact, up
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.questions import rise
from topsecret.questions.question import Question
from topsecret.questions.secret_counts import counted, engine_of
from topsecret.results.group_releases import Releases
from topsecret.results.release import Release
from topsecret.sources import Source

if TYPE_CHECKING:
    from topsecret.ledger import Flexible, Metered

Answer = Release | Releases
Draws = Callable[[], tuple[Answer, int]]
"""Reads and draws: the answer, and how many symbols were released."""

STEPS = 6
"""How often the price of one of several lists over time is bisected."""
TRIES, ENOUGH = 6, 0.97
"""How often the budget of one of several lists is tried, and which part of all is spent enough."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What is to be paid for: a question, calibrated, about a source. All public."""

    question: Question
    plan: Plan
    source: Source


class Purse(Protocol):
    """What a question is paid from."""

    @property
    def terms(self) -> Metered | Flexible | None:
        """The budget's public terms; None where nobody keeps one."""
        ...

    def pay(self, bill: Bill, read_and_draw: Draws) -> Answer:
        """Reserve the price, read and draw, store; or the answer that was paid for before."""
        ...


@dataclass(frozen=True, slots=True)
class Free:
    """Nobody keeps a budget: every answer is drawn anew."""

    terms: None = None

    def pay(self, bill: Bill, read_and_draw: Draws) -> Answer:
        """Read and draw."""
        return read_and_draw()[0]


def answer(question: Question, source: Source, purse: Purse) -> Answer:
    """The answer to a question about a source, paid for from a purse.

    *Guarantee.* What comes back is private as the receipt says, and whatever else a caller can
    see (errors, charges, the number of rows asked for) depends on public values alone.
    """
    plan = checked_plan(question, source, purse.terms)
    return purse.pay(Bill(question, plan, source), lambda: drawn(question, plan, source))


def drawn(question: Question, plan: Plan, source: Source) -> tuple[Answer, int]:
    """Read and draw what was planned and paid for: the answer, and how many symbols it has."""
    queries = question.queries(plan.each.rows)
    more = (question.count_persons, plan.each.weights, bool(question.rise_from))
    with counted(source, queries, *more) as (histograms, persons):
        return _released(question, plan, source, histograms, persons)


def checked_plan(
    question: Question, source: Source, terms: Metered | Flexible | None, lists: int = 1
) -> Plan:
    """How so many lists of a question about a source are drawn, all refusals behind us."""
    _check_source(source, question)
    if question.rise_from:
        engine_of(source)
    numbers = _numbers(question, source)
    if not _can_weigh(question, source):
        numbers = numbers.choosing("public")
    plan = planned(numbers, question, terms, lists)
    if plan.each.weights is not None:
        _refuse_for_weights(question)
    if terms is not None:
        _check_schema(source, question)
    return plan


@dataclass(frozen=True, slots=True, eq=False)  # kept and compared as the object that it is
class Plan:
    """How a question is answered: each of its lists, and what all of them cost together."""

    each: Calibrated
    lists: int
    """How many lists one person can be in: their losses add up."""
    epsilon: float
    delta: float


def planned(
    numbers: Numbers,
    question: Question,
    terms: Metered | Flexible | None = None,
    lists: int = 1,
) -> Plan:
    """The question's lists, calibrated so that together they keep to its (ε, δ).

    ``lists`` are drawn of one question at different times; groups have one each.
    """
    groups = question.groups
    over_time = lists > 1
    if groups is not None and not groups.disjoint:
        lists *= len(groups.values)
    at = None
    if terms is not None and terms.kind == "metered":
        at = down(terms.price), down(terms.query_delta)
    return _planned(numbers, question.mechanism, question.counts, at, lists, over_time)


@lru_cache(maxsize=256)
def _planned(
    numbers: Numbers,
    mechanism: str | Mechanism,
    counts: CountsBudget | None,
    at: tuple[float, float] | None,
    lists: int,
    over_time: bool,
) -> Plan:
    """The costliest lists, or nearly, that the budget can afford together.

    δ is divided evenly. ε/lists is always affordable (basic composition); the sum of all losses
    is usually far smaller than the sum of their epsilons, so that more is tried.
    """

    def each_at(epsilon: float, delta: float) -> Calibrated:
        asked = replace(numbers, epsilon=epsilon, delta=delta)
        return calibrated(_named(mechanism, asked, at), asked, counts, at)

    epsilon, delta = numbers.epsilon, numbers.delta
    if lists == 1:
        best = each_at(epsilon, delta)
        return Plan(best, 1, best.epsilon, delta)
    share, least = down(exact(delta) / lists), down(exact(epsilon) / lists)
    if over_time:
        best = _bisected(each_at, least, epsilon, share, lambda one: _together(one, lists, delta))
        return Plan(best, lists, _together(best, lists, delta), delta)
    if at is not None or delta == 0 or not isinstance(mechanism, str):
        best = each_at(least, share)  # prices that others fixed, or that add up one by one
        return Plan(best, lists, _together(best, lists, delta), delta)
    from topsecret.planning.several_lists import calibrated_together, epsilon_of_each, likely_name

    name = likely_name(replace(numbers, epsilon=least, delta=share), mechanism)
    first = None if counts is not None else calibrated_together(mechanism, numbers, lists)
    x = 0.0 if first is not None else epsilon_of_each(name, numbers, lists, counts is not None)
    found: list[tuple[float, Calibrated]] = []
    for _ in range(TRIES):
        tried = first or each_at(min(max(x, least), epsilon), share)
        spent = _together(tried, lists, delta)
        if spent <= epsilon:
            found.append((spent, tried))
            if first is not None or spent >= ENOUGH * epsilon:
                break
        # What lists cost together is nearly in proportion to what one costs.
        more = (1 + ENOUGH) / 2 * epsilon / max(spent, epsilon / 16)
        x, first = tried.question.epsilon * more, None
    if not found:
        found = [(_together(best := each_at(least, share), lists, delta), best)]
    spent, best = max(found, key=lambda one: one[0])
    return Plan(best, lists, spent, delta)


def _bisected(
    each_at: Callable[[float, float], Calibrated],
    low: float,
    high: float,
    share: float,
    together: Callable[[Calibrated], float],
) -> Calibrated:
    """As lists over time are priced: their plan is made anew for each, and must not change."""
    best, epsilon = each_at(low, share), high
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        tried = each_at(middle, share)
        if together(tried) <= epsilon:
            best, low = tried, middle
        else:
            high = middle
    return best


def _together(each: Calibrated, lists: int, delta: float) -> float:
    """What so many lists cost at delta: by their summed losses, or one by one."""
    return min(up(lists * exact(each.epsilon)), (lists * each.loss).epsilon(delta))


def _named(mechanism: str | Mechanism, numbers: Numbers, at: object) -> str | Mechanism:
    """The mechanism that "auto" stands for, by a public rule."""
    if not isinstance(mechanism, str) and at is not None:
        raise InvalidParameter(
            "a metered budget needs a mechanism by its name: it sets the parameters itself"
        )
    if mechanism != "auto":
        return mechanism
    if numbers.two_periods:
        return LEADING_RISES
    if at is not None:
        return "limited-domain"
    from topsecret.planning.rule import recommended_name

    return recommended_name(numbers)


def _numbers(question: Question, source: Source) -> Numbers:
    """The public numbers, with the size of the domain, which the source may have to count."""
    if question.counted.domain is None:
        return question.numbers
    from topsecret.sources.domains.counted_domain import domain_size

    return question.numbers.within(domain_size(engine_of(source), question.counted))


def _can_weigh(question: Question, source: Source) -> bool:
    """Whether persons can be weighted, so that "auto" may choose it: by public conditions alone."""
    from topsecret.sources.domains.domain import Interval
    from topsecret.sources.session import Engine

    shared_out = question.groups is not None and question.groups.disjoint
    listed = not isinstance(question.counted.domain, Interval)
    return isinstance(source, Engine) and question.counts is None and not shared_out and listed


def _refuse_for_weights(question: Question) -> None:
    """What the statement of weighted sums does not know, refused before anything is paid."""
    if question.groups is not None and question.groups.disjoint:
        raise InvalidParameter(
            "disjoint=True is not offered with weighted persons; leave it out, or pass "
            "mechanism='tested'"
        )
    from topsecret.sources.domains.domain import Interval

    if isinstance(question.counted.domain, Interval):
        raise InvalidParameter(
            "weighted persons need a domain that is listed, in a table or in a file; "
            "list the items instead of domain=range(…)"
        )


def _check_source(source: Source, question: Question) -> None:
    """A source that is no engine of ours says itself what it applies: no receipt may say more."""
    counted = question.counted
    if counted.max_items is None and not counted.where and counted.measure is None:
        return
    from topsecret.sources.session import Engine

    if counted.measure is not None and (counted.measure.bounds or counted.measure.total):
        engine_of(source)
    ours = {"max_items", "where", "measure"}
    does = ours if isinstance(source, Engine) else getattr(source, "does", ())
    for name in ("max_items", "where", "measure"):
        if getattr(counted, name) and name not in does:
            raise InvalidParameter(
                f"{source.name} does not declare that it applies {name}; leave {name} out, or let "
                f"the source say does = {{'{name}'}}"
            )


def _check_schema(source: Source, question: Question) -> None:
    """What the columns' types show to be wrong is refused before it is paid for."""
    from topsecret.sources.session import Engine, check_before_paying

    asked = question.counted
    rows = asked.where or question.rise_from
    plain = all(isinstance(part, str) for part in asked.item_columns) and not rows
    if isinstance(source, Engine) and not (plain and question.groups is None):
        check_before_paying(source, question.queries(1))


def _released(
    question: Question,
    plan: Plan,
    source: Source,
    histograms: Sequence[Histogram],
    persons: Sequence[int] | None,
) -> tuple[Answer, int]:
    """The answer with its receipt, and how many symbols were released."""
    groups = question.groups
    names = [""] if groups is None else [f"{groups.name} = {value}" for value in groups.values]
    everybody = [None] * len(names) if persons is None else persons
    lists = [
        _release(question, plan.each, source, name, histogram, number)
        for name, histogram, number in zip(names, histograms, everybody, strict=True)
    ]
    symbols = sum(number for _, number in lists)
    if groups is None:
        return lists[0][0], symbols
    composition = "parallel" if groups.disjoint else "sequential"
    shown = {value: release for value, (release, _) in zip(groups.values, lists, strict=True)}
    return Releases(groups.name, shown, composition, plan.epsilon, plan.delta), symbols


def _release(
    question: Question,
    each: Calibrated,
    source: Source,
    group: str,
    histogram: Histogram,
    persons: int | None,
) -> tuple[Release, int]:
    from topsecret import __version__

    drawn, counted = each.draw(histogram, persons), question.counted
    measure, parameters = counted.measure, each.parameters
    if measure is not None and measure.bounds and drawn.branch is not None:
        measure = measure.at(int(drawn.branch))
        parameters = {**parameters, "max_per_item": measure.bound}
    described, clipping = ("", "") if measure is None else (measure.described, measure.clipping)
    if question.rise_from:
        described, clipping = rise.described(question.rise_from), rise.CLIPPING
    if measure != counted.measure:
        clipping += "; the data chose the bound, with noise, within the same guarantee"
    elif isinstance(each.weights, Clip) and drawn.branch == "weighted":
        clipping += f"; {scaled_down(each.question, each.weights)}"
    release = Release(
        items=drawn.items,
        complete=drawn.complete,
        ordered=drawn.ordered,
        k=question.numbers.k,
        epsilon=each.epsilon,
        delta=each.delta,
        mechanism=each.selection.name,
        parameters=parameters,
        bound=each.bound,
        threshold=each.selection.rule(drawn.branch),
        unit=question.unit,
        source=source.name,
        item=question.item,
        version=__version__,
        time=datetime.now(UTC),
        chosen=drawn.chosen,
        told=drawn.ending,
        counts=drawn.counts,
        persons=drawn.persons,
        half_width=None if drawn.intervals is None else drawn.intervals.half_width(),
        intervals=drawn.intervals,
        weighted=None if drawn.values is None else tuple(v / UNIT for v in drawn.values),
        at_least=drawn.at_least,
        group=group,
        where=" and ".join(map(str, counted.where)),
        domain="" if counted.domain is None else counted.domain.described,
        measure=described,
        least=question.numbers.least,
        clipping=clipping,
        assumes=tuple(getattr(source, "assumes", ())),
    )
    return release, drawn.symbols
