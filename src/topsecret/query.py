"""Ask for the most common items: the one place where source, mechanism and ledger meet.

The order of events is fixed: check the public parameters, calibrate the mechanism to the budget,
pay for the worst case if a ledger keeps the budget, ask the source for the leading counts, select,
store the answer with what it cost, and make the release. Everything that can be wrong with the
parameters is found before the data are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from topsecret.errors import InvalidParameter
from topsecret.release import Release
from topsecret.rounding import Number, ball, down, exact, up
from topsecret.sources import Column, CountQuery, Expression, FileColumn, Source, domain_of
from topsecret.unit import PrivacyUnit

if TYPE_CHECKING:
    from topsecret.accounting import Loss
    from topsecret.catalogue import Prepared, Question
    from topsecret.catalogue.counts import PreparedCounts
    from topsecret.histogram import Histogram
    from topsecret.ledger import Bargain, Flexible, Ledger, Metered, Price, Request
    from topsecret.sources.session import Engine

__all__ = ["Asked", "Column", "Expression", "FileColumn", "ask", "histograms", "top_k"]


def top_k(
    source: Any,
    *,
    item: str | Sequence[str] | Expression,
    person: str,
    k: int | Literal["auto"],
    epsilon: Number | None = None,
    delta: Number = 1e-6,
    k_bar: int | None = None,
    mechanism: str = "auto",
    table: str | tuple[str, ...] | None = None,
    where: Any = (),
    max_items: int | None = None,
    domain: Any = None,
    counts: bool = False,
    counts_share: float = 0.25,
    salt: bytes = b"",
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
) -> Release:
    """Name the ``k`` items with the most distinct persons, with differential privacy.

    ``source`` has one row per event: a file or a pattern of files (CSV, TSV, JSON lines, Parquet),
    a database's URL or engine with its ``table``, a data frame. ``item`` is the column to rank, or
    several, or an ``Expression``; ``person`` the column that tells persons apart. ``where`` keeps
    rows by conditions ``(column, operator, value)``; ``max_items`` keeps that many items of each
    person, chosen by a secret ``salt``. ``domain`` lists all items where they are public: no
    threshold is needed then. ``counts=True`` adds noisy counts for ``counts_share`` of epsilon.

    ``k_bar`` is how many leading items may be looked at, ``20 * k`` by default. ``k="auto"`` names
    as many items as the counts set apart clearly, as a set. ``mechanism="auto"`` follows the
    public rule of ``plan``, which looks at the numbers given here and never at the data.

    With a ``ledger`` the answer is paid for from the budget of ``dataset``, in the name of
    ``analyst`` if it has allowances. A metered budget sets the price: leave ``epsilon`` out. The
    same question again returns the stored answer for nothing; a ``request_id`` of your choice
    makes it safe to repeat a call whose outcome you did not see.

    *Guarantee.* The returned items, how the list ended and the counts are together
    (``epsilon``, ``delta``)-differentially private under adding or removing one person with all
    their rows, however many. The release states what is proven, never more than was asked for.
    """
    budget = _budget(ledger, dataset)
    asked = ask(
        source,
        budget=budget,
        item=item,
        person=person,
        k=k,
        epsilon=epsilon,
        delta=delta,
        k_bar=k_bar,
        mechanism=mechanism,
        table=table,
        where=where,
        max_items=max_items,
        domain=domain,
        counts_share=counts_share if counts else None,
        salt=salt,
    )

    def read_and_draw() -> tuple[Release, int]:
        with histograms(asked.opened, [asked.query]) as counted:
            return asked.draw(counted[0])

    if ledger is None or dataset is None:
        return read_and_draw()[0]
    from topsecret.ledger import Request

    prepared = asked.prepared
    request = Request(
        dataset=dataset,
        price=_price(prepared, asked.counts),
        # Names alone would miss a parameter: the objects that decide the answer's law are asked.
        question={
            "source": asked.opened.name,
            "version": str(getattr(asked.opened, "version", "")),
            "counted": repr(asked.query),
            "unit": repr(asked.unit),
            "asked": prepared.question.to_dict(),
            "mechanism": repr(prepared.mechanism),
            **({"counts": repr(asked.counts)} if asked.counts else {}),
        },
        unit=asked.unit,
        analyst=analyst,
        request_id=request_id,
        bargain=_bargain(asked),
    )
    return _paid(ledger, request, read_and_draw)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with everything that answers it. All public but what the source holds."""

    opened: Source
    query: CountQuery
    unit: PrivacyUnit
    prepared: Prepared
    counts: PreparedCounts | None
    counts_share: float | None
    budget: tuple[float, float]
    """What the answer may cost, (ε, δ)."""

    @property
    def loss(self) -> Loss:
        """What the answer costs, counts included."""
        loss = self.prepared.mechanism.loss
        return loss if self.counts is None else loss + self.counts.loss

    def draw(self, histogram: Histogram) -> tuple[Release, int]:
        """The answer, and how many symbols it took."""
        prepared, (_, delta) = self.prepared, self.budget
        selection = prepared.mechanism.select(histogram)
        asked_for = prepared.question.k
        parameters = dict(prepared.parameters)
        noisy: tuple[int, ...] | None = None
        if self.counts is not None:
            noisy = self.counts.release(histogram, selection.items)
            parameters |= {
                "counts_share": self.counts_share,
                "counts_sigma": up(ball(self.counts.variance).sqrt()),
            }
        release = Release(
            items=selection.items,
            complete=selection.complete
            and (asked_for == "auto" or len(selection.items) == asked_for),
            ordered=selection.ordered,
            k=asked_for,
            epsilon=self.loss.epsilon(delta),
            delta=delta,
            mechanism=prepared.name,
            parameters=parameters,
            bound=self.loss.bound_used(delta),
            threshold=prepared.named_when,
            unit=self.unit,
            source=self.opened.name,
            item=_item_name(self.query.item),
            version=_version(),
            time=datetime.now(UTC),
            chosen=selection.chosen,
            told=prepared.told(selection),
            counts=noisy,
            half_width=None if self.counts is None else self.counts.half_width,
            where=" and ".join(map(str, self.query.where)),
            domain="" if self.query.domain is None else self.query.domain.described,
        )
        return release, len(selection.outcome)


def ask(
    source: Any,
    *,
    budget: Metered | Flexible | None = None,
    item: str | Sequence[str] | Expression,
    person: str,
    k: int | Literal["auto"],
    epsilon: Number | None,
    delta: Number,
    k_bar: int | None,
    mechanism: str,
    table: str | tuple[str, ...] | None,
    where: Any,
    max_items: int | None,
    domain: Any,
    counts_share: float | None,
    salt: bytes = b"",
) -> Asked:
    """Check every parameter, open the source and calibrate, before any row is read."""
    from topsecret.sources.opening import open_source

    unit = PrivacyUnit(person=person, max_items=max_items)
    named = item if isinstance(item, str | Expression) else tuple(item)
    public = None if domain is None else domain_of(domain)
    query = CountQuery(named, person, 1, where, max_items, public, salt=salt)
    if domain is None:
        # The numbers are checked before the source is opened.
        _question(budget, k, epsilon, delta, k_bar, max_items, None)
    opened = open_source(source, table)
    size = None if public is None else _domain_size(opened, query)
    question = _question(budget, k, epsilon, delta, k_bar, max_items, size)
    prepared, noisy = _prepared(budget, question, mechanism, counts_share)
    query = replace(query, rows=prepared.rows)
    return Asked(
        opened, query, unit, prepared, noisy, counts_share, (question.epsilon, question.delta)
    )


@contextmanager
def histograms(opened: Source, queries: Sequence[CountQuery]) -> Iterator[list[Histogram]]:
    """The counts of each question, of one moment of the data where the source can do that."""
    from topsecret.histogram import Histogram

    if queries[0].domain is not None:
        from topsecret.grouped import GroupedTable
        from topsecret.sources.counted_domain import counted_domains

        with counted_domains(_engine(opened), queries) as domains:
            yield [Histogram(GroupedTable(domain)) for domain in domains]
        return
    if len(queries) == 1:
        rows = [opened.leading_counts(queries[0])]
    else:
        from topsecret.sources.session import leading_counts_of

        rows = leading_counts_of(_engine(opened), queries)
    yield [
        Histogram.leading(found, limit=query.rows)
        for found, query in zip(rows, queries, strict=True)
    ]


def _engine(opened: Source) -> Engine:
    from topsecret.sources.session import Engine

    if isinstance(opened, Engine):
        return opened
    raise InvalidParameter(
        f"{opened.name} counts leading items only; a public domain or groups need a file, "
        "a database or a data frame"
    )


def _domain_size(opened: Source, query: CountQuery) -> int:
    from topsecret.sources.counted_domain import domain_size

    return domain_size(_engine(opened), query)


def _item_name(item: str | tuple[str, ...] | Expression) -> str:
    if isinstance(item, Expression):
        return item.text
    return item if isinstance(item, str) else ", ".join(item)


def _question(
    budget: Metered | Flexible | None,
    k: int | Literal["auto"],
    epsilon: Number | None,
    delta: Number,
    k_bar: int | None,
    max_items: int | None,
    size: int | None,
) -> Question:
    """The public numbers, checked; those of a metered budget are its owner's."""
    from topsecret.catalogue import Question

    if budget is not None and budget.kind == "metered":
        if epsilon is not None:
            raise InvalidParameter(
                f"epsilon={epsilon} must be left out: the data set's budget is metered, with "
                f"{float(budget.price):.4g} per item"
            )
        epsilon, delta = down(budget.epsilon), down(budget.delta)
    if epsilon is None:
        raise InvalidParameter("epsilon is missing; 1 is a common choice")
    return Question.of(
        k=k, epsilon=epsilon, delta=delta, k_bar=k_bar, max_items=max_items, domain_size=size
    )


def _prepared(
    budget: Metered | Flexible | None,
    question: Question,
    mechanism: str,
    counts_share: float | None,
) -> tuple[Prepared, PreparedCounts | None]:
    """The mechanism, calibrated to (ε, δ) or at the price that a metered budget fixed."""
    from topsecret.catalogue import prepare, prepare_at

    if budget is not None and budget.kind == "metered":
        if counts_share is not None:
            raise InvalidParameter("counts=True needs a budget that is not metered; leave it out")
        name = "limited-domain" if mechanism == "auto" else mechanism
        return prepare_at(name, question, down(budget.price), down(budget.query_delta)), None
    if mechanism == "auto":
        from topsecret.planning.rule import recommend

        mechanism = recommend(question).name
    if counts_share is None:
        return prepare(mechanism, question), None
    from topsecret.catalogue.counts import with_counts

    return with_counts(mechanism, question, counts_share)


def _paid(
    ledger: Ledger, request: Request, read_and_draw: Callable[[], tuple[Release, int]]
) -> Release:
    """The answer, shown only once the ledger has stored it with what it cost."""
    from topsecret.ledger import paid
    from topsecret.ledger.account import in_words
    from topsecret.record import from_record, to_record

    def drawn() -> tuple[dict[str, object], int]:
        release, symbols = read_and_draw()
        return to_record(release), symbols

    stored = paid(ledger, request, drawn)
    where = f"data set {request.dataset!r} (entry {stored.position})"
    charge = (
        f"{in_words(stored.cost)} of {where}"
        if stored.fresh
        else f"nothing: this is the stored answer to the same question from {where}"
    )
    return replace(from_record(stored.answer), charge=charge)


def _budget(ledger: Ledger | None, dataset: str | None) -> Metered | Flexible | None:
    if ledger is None and dataset is None:
        return None
    if ledger is None:
        raise InvalidParameter(f"dataset={dataset!r} needs a ledger; pass ledger=Ledger()")
    if dataset is None:
        raise InvalidParameter("a ledger needs the name of a data set; pass dataset='...'")
    return ledger.account(dataset).budget


def _price(prepared: Prepared, counts: PreparedCounts | None = None) -> Price:
    from topsecret.catalogue import paid_by_symbol
    from topsecret.ledger import Picks, Price

    if counts is not None:  # paid in full: the discrete Gaussian's own form is kept
        return Price(prepared.mechanism.loss + counts.loss)
    terms = paid_by_symbol(prepared)
    if terms is None:
        return Price(prepared.mechanism.loss)
    symbols, epsilon, share = terms
    return Price(prepared.mechanism.loss, Picks(symbols, exact(epsilon), exact(share)))


def _bargain(asked: Asked) -> Bargain:
    """The same mechanism for another ε, to say which would have fitted."""
    from topsecret.ledger import Bargain

    question, name = asked.prepared.question.at(asked.budget[0]), asked.prepared.name
    return Bargain(
        question.epsilon,
        lambda epsilon: _price(*_prepared(None, question.at(epsilon), name, asked.counts_share)),
    )


def _version() -> str:
    from topsecret import __version__

    return __version__
