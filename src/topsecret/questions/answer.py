"""From a question to its answer: the one place where source, mechanism and ledger meet.

The order of events is fixed: calibrate to the budget, from public numbers alone; pay for the worst
case, or find the answer that was paid for before; ask the source for its counts; draw; store the
answer with what it cost; show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from topsecret.calibration.prepared import Calibrated
from topsecret.calibration.question import Question as Numbers
from topsecret.calibration.words import scaled_down
from topsecret.counts.clip import Clip
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import UNIT, Weights
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import down
from topsecret.questions import rise
from topsecret.questions.planned_lists import Plan, lists_within
from topsecret.questions.question import Question
from topsecret.results.group_releases import Releases
from topsecret.results.release import Release
from topsecret.sources import CountQuery, Source

if TYPE_CHECKING:
    from topsecret.ledger import Flexible, Metered
    from topsecret.sources.session import Engine

Answer = Release | Releases
Draws = Callable[[], tuple[Answer, int]]
"""Reads and draws: the answer, and how many symbols were released."""


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
    return lists_within(numbers, question.mechanism, question.counts, at, lists, over_time)


def _numbers(question: Question, source: Source) -> Numbers:
    """The public numbers, with the size of the domain, which the source may have to count."""
    if question.counted.domain is None:
        return question.numbers
    from topsecret.sources.domains.counted_domain import domain_size

    return question.numbers.within(domain_size(engine_of(source), question.counted))


def _can_weigh(question: Question, source: Source) -> bool:
    """Whether people can be weighted, so that "auto" may choose it: by public conditions alone."""
    from topsecret.sources.domains.domain import Interval
    from topsecret.sources.session import Engine

    shared_out = question.groups is not None and question.groups.disjoint
    listed = not isinstance(question.counted.domain, Interval)
    return isinstance(source, Engine) and question.counts is None and not shared_out and listed


def _refuse_for_weights(question: Question) -> None:
    """What the statement of weighted sums does not know, refused before anything is paid."""
    if question.count_persons:
        raise InvalidParameter(
            "count_persons=True is not offered where people may be weighted; leave it out, or "
            "pass mechanism='tested'"
        )
    if question.groups is not None and question.groups.disjoint:
        raise InvalidParameter(
            "disjoint=True is not offered with weighted people; leave it out, or pass "
            "mechanism='tested'"
        )
    from topsecret.sources.domains.domain import Interval

    if isinstance(question.counted.domain, Interval):
        raise InvalidParameter(
            "weighted people need a domain that is listed, in a table or in a file; "
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


@contextmanager
def counted(
    source: Source,
    queries: Sequence[CountQuery],
    count_persons: bool = False,
    weights: Weights | Clip | None = None,
    rises: bool = False,
) -> Iterator[tuple[list[Histogram], list[int] | None]]:
    """The secret counts of each list, of one moment of the data where the source can do that.

    With ``count_persons`` also how many people each is of; with ``weights`` their sums, or those
    of parts, beside the counts; with ``rises`` the first counts less the second.
    """
    if weights is not None:
        from topsecret.counts.engine_table import GroupedTable, PersonsTable
        from topsecret.sources.domains.weighted_labels import weighted_labels

        table = weights.table if isinstance(weights, Weights) else weights
        with weighted_labels(engine_of(source), queries, table) as labels:
            tables = [(PersonsTable(one), GroupedTable(one)) for one in labels]
            yield [Histogram(persons, (weights, sums)) for persons, sums in tables], None
        return
    measure = queries[0].measure
    if measure is not None and measure.bounds:
        from topsecret.counts.scores_by_bound import ScoresKeptByEngine
        from topsecret.sources.domains.scores_by_bound import scores_by_bound

        with scores_by_bound(engine_of(source), queries) as found:
            kept = [ScoresKeptByEngine(one, measure.bounds, queries[0].rows) for one in found]
            yield [Histogram.by_bound(one) for one in kept], None
        return
    if rises and queries[0].domain is None:
        from topsecret.counts.two_periods import TwoPeriods
        from topsecret.sources.domains.rises import leading_rises

        with leading_rises(engine_of(source), queries) as (later, earlier):
            yield [Histogram(TwoPeriods(later, earlier, queries[0].rows))], None
        return
    total = measure is not None and measure.total > 0
    if queries[0].domain is not None or total:
        from topsecret.counts.engine_table import GroupedTable
        from topsecret.sources.domains.counted_domain import counted_domains
        from topsecret.sources.domains.rises import counted_rises

        counting = counted_rises if rises else counted_domains
        with counting(_engine(source, queries, count_persons), queries) as domains:
            everybody = [domain.persons() for domain in domains] if count_persons else None
            yield [Histogram(GroupedTable(domain)) for domain in domains], everybody
        return
    everybody = None
    if count_persons:
        from topsecret.sources.session import leading_counts_and_persons

        lists, everybody = leading_counts_and_persons(_engine(source, queries, True), queries)
    elif len(queries) == 1:
        lists = [source.leading_counts(queries[0])]
    else:
        from topsecret.sources.session import leading_counts_of

        lists = leading_counts_of(engine_of(source), queries)
    read = zip(lists, queries, strict=True)
    yield [Histogram.leading(rows, limit=query.rows) for rows, query in read], everybody


def _engine(source: Source, queries: Sequence[CountQuery], count_persons: bool) -> Engine:
    """The source as an engine, which reads its rows once where people are counted, too."""
    from topsecret.sources.read_once import ReadOnce

    return ReadOnce(engine_of(source), queries) if count_persons else engine_of(source)


def engine_of(source: Source) -> Engine:
    """The source as an engine of ours, which can do more than rank."""
    from topsecret.sources.session import Engine

    if isinstance(source, Engine):
        return source
    raise InvalidParameter(
        f"{source.name} counts leading items only; a public domain, groups or a bound that is "
        "chosen privately need a file, a database or a data frame"
    )


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
        assert measure is not None
        clipping += (
            f". The program chose the limit {measure.bound} by a noisy look at the data, already "
            "counted in epsilon"
        )
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
