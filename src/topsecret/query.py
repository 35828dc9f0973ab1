"""Ask for the most common items: the one place where source, mechanism and ledger meet.

The order of events is fixed: check the public parameters, calibrate the mechanism to the budget,
pay for the worst case if a ledger keeps the budget, ask the source for the leading counts, select,
store the answer with what it cost, and make the release. Everything that can be wrong with the
parameters is found before the data are touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from topsecret.errors import InvalidParameter
from topsecret.release import Release
from topsecret.rounding import Number, down, exact
from topsecret.sources import CountQuery, Source
from topsecret.unit import PrivacyUnit

if TYPE_CHECKING:
    from topsecret.catalogue import Prepared
    from topsecret.ledger import Bargain, Flexible, Ledger, Metered, Price, Request


def top_k(
    source: str | os.PathLike[str] | Source,
    *,
    item: str,
    person: str,
    k: int | Literal["auto"],
    epsilon: Number | None = None,
    delta: Number = 1e-6,
    k_bar: int | None = None,
    mechanism: str = "auto",
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
) -> Release:
    """Name the ``k`` items with the most distinct persons, with differential privacy.

    ``source`` is a file with one row per event (CSV, TSV, JSON lines or Parquet), ``item`` the
    column to rank, ``person`` the column that tells persons apart. ``k_bar`` is how many leading
    items may be looked at, ``20 * k`` by default. ``k="auto"`` names as many items as the counts
    set apart clearly, as a set. ``mechanism="auto"`` follows the public rule of ``plan``, which
    looks at the numbers given here and never at the data.

    With a ``ledger`` the answer is paid for from the budget of ``dataset``, in the name of
    ``analyst`` if it has allowances. A metered budget sets the price: leave ``epsilon`` out. The
    same question again returns the stored answer for nothing; a ``request_id`` of your choice
    makes it safe to repeat a call whose outcome you did not see.

    *Guarantee.* The returned items and how the list ended are together
    (``epsilon``, ``delta``)-differentially private under adding or removing one person with all
    their rows, however many. The release states what is proven, never more than was asked for.
    """
    unit = PrivacyUnit(person=person)
    budget = _budget(ledger, dataset)
    prepared = _prepared(budget, k, epsilon, delta, k_bar, unit.max_items, mechanism)
    question, loss = prepared.question, prepared.mechanism.loss
    query = CountQuery(item=item, person=unit.person, rows=prepared.rows)
    opened = _open(source)

    def read_and_draw() -> tuple[Release, int]:
        from topsecret.histogram import Histogram

        counts = Histogram.leading(opened.leading_counts(query), limit=query.rows)
        selection = prepared.mechanism.select(counts)
        release = Release(
            items=selection.items,
            complete=selection.complete and (k == "auto" or len(selection.items) == question.k),
            ordered=selection.ordered,
            k=question.k,
            epsilon=loss.epsilon(question.delta),
            delta=question.delta,
            mechanism=prepared.name,
            parameters=prepared.parameters,
            bound=loss.bound_used(question.delta),
            threshold=prepared.named_when,
            unit=unit,
            source=opened.name,
            item=item,
            version=_version(),
            time=datetime.now(UTC),
            chosen=selection.chosen,
            told=prepared.told(selection),
        )
        return release, len(selection.outcome)

    if ledger is None or dataset is None:
        return read_and_draw()[0]
    from topsecret.ledger import Request

    request = Request(
        dataset=dataset,
        price=_price(prepared),
        # Names alone would miss a parameter: the objects that decide the answer's law are asked.
        question={
            "source": opened.name,
            "version": str(getattr(opened, "version", "")),
            "counted": repr(query),
            "unit": repr(unit),
            "asked": question.to_dict(),
            "mechanism": repr(prepared.mechanism),
        },
        unit=unit,
        analyst=analyst,
        request_id=request_id,
        bargain=_bargain(prepared),
    )
    return _paid(ledger, request, read_and_draw)


def _prepared(
    budget: Metered | Flexible | None,
    k: int | Literal["auto"],
    epsilon: Number | None,
    delta: Number,
    k_bar: int | None,
    max_items: int | None,
    mechanism: str,
) -> Prepared:
    """The mechanism, calibrated to (ε, δ) or at the price that a metered budget fixed."""
    from topsecret.catalogue import Question, prepare, prepare_at

    if budget is not None and budget.kind == "metered":
        if epsilon is not None:
            raise InvalidParameter(
                f"epsilon={epsilon} must be left out: the data set's budget is metered, with "
                f"{float(budget.price):.4g} per item"
            )
        total, failure = down(budget.epsilon), down(budget.delta)
        question = Question.of(k=k, epsilon=total, delta=failure, k_bar=k_bar, max_items=max_items)
        name = "limited-domain" if mechanism == "auto" else mechanism
        return prepare_at(name, question, down(budget.price), down(budget.query_delta))
    if epsilon is None:
        raise InvalidParameter("epsilon is missing; 1 is a common choice")
    question = Question.of(k=k, epsilon=epsilon, delta=delta, k_bar=k_bar, max_items=max_items)
    if mechanism == "auto":
        from topsecret.planning.rule import recommend

        mechanism = recommend(question).name
    return prepare(mechanism, question)


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


def _price(prepared: Prepared) -> Price:
    from topsecret.catalogue import paid_by_symbol
    from topsecret.ledger import Picks, Price

    terms = paid_by_symbol(prepared)
    if terms is None:
        return Price(prepared.mechanism.loss)
    symbols, epsilon, share = terms
    return Price(prepared.mechanism.loss, Picks(symbols, exact(epsilon), exact(share)))


def _bargain(prepared: Prepared) -> Bargain:
    """The same mechanism for another ε, to say which would have fitted."""
    from topsecret.catalogue import prepare
    from topsecret.ledger import Bargain

    question = prepared.question
    return Bargain(
        question.epsilon, lambda epsilon: _price(prepare(prepared.name, question.at(epsilon)))
    )


def _open(source: str | os.PathLike[str] | Source) -> Source:
    if isinstance(source, str | os.PathLike):
        from topsecret.sources.duckdb import FileSource

        return FileSource(source)
    if isinstance(source, Source):
        return source
    if any(kind.__module__.startswith("pyspark.") for kind in type(source).__mro__):
        from topsecret.sources.spark import SparkSource

        return SparkSource(source)
    raise InvalidParameter(
        f"source must be the path of a file or a source; found a {type(source).__name__}"
    )


def _version() -> str:
    from topsecret import __version__

    return __version__
