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
    from topsecret.catalogue import Prepared, Question
    from topsecret.ledger import Flexible, Ledger, Metered, Price, Request
    from topsecret.mechanisms.mechanism import Mechanism


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
    from topsecret.catalogue import Question

    unit = PrivacyUnit(person=person)
    account = _account(ledger, dataset)
    metered = None if account is None or account.kind != "metered" else account
    if metered is not None:
        question = Question.of(
            k=k, epsilon=_left_out(epsilon, metered), delta=metered.delta, k_bar=k_bar
        )
        prepared = _metered(question, metered, mechanism)
    else:
        question = Question.of(
            k=k, epsilon=_needed(epsilon), delta=delta, k_bar=k_bar, max_items=unit.max_items
        )
        prepared = _calibrated(mechanism, question)
    query = CountQuery(item=item, person=unit.person, rows=question.k_bar + 1)
    opened = _open(source)
    loss = prepared.mechanism.loss
    proven, bound = loss.epsilon(question.delta), loss.bound_used(question.delta)

    def read_and_draw() -> tuple[Release, int]:
        from topsecret.histogram import Histogram

        counts = Histogram.leading(opened.leading_counts(query), limit=query.rows)
        selection = prepared.mechanism.select(counts)
        release = Release(
            items=selection.items,
            complete=selection.complete and (k == "auto" or len(selection.items) == question.k),
            ordered=selection.ordered,
            k=question.k,
            epsilon=proven,
            delta=question.delta,
            mechanism=prepared.name,
            parameters=prepared.parameters,
            bound=bound,
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
    from topsecret.ledger import Bargain, Request

    def price_at(other: float) -> Price:
        return _price(_calibrated(mechanism, question.at(other)).mechanism)

    # Names alone would miss a parameter: the objects that decide the answer's law are asked.
    asked = {
        "source": opened.name,
        "version": str(getattr(opened, "version", "")),
        "counted": repr(query),
        "unit": repr(unit),
        "mechanism": repr(prepared.mechanism),
        "k": question.k,
    }
    request = Request(
        dataset=dataset,
        price=_price(prepared.mechanism),
        question=asked,
        unit=unit,
        analyst=analyst,
        request_id=request_id,
        bargain=None if metered is not None else Bargain(question.epsilon, price_at),
    )
    return _paid(ledger, request, read_and_draw)


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


def _account(ledger: Ledger | None, dataset: str | None) -> Metered | Flexible | None:
    if ledger is None and dataset is None:
        return None
    if ledger is None:
        raise InvalidParameter(f"dataset={dataset!r} needs a ledger; pass ledger=Ledger()")
    if dataset is None:
        raise InvalidParameter("a ledger needs the name of a data set; pass dataset='...'")
    return ledger.account(dataset).budget


def _price(mechanism: Mechanism) -> Price:
    """What a mechanism costs: these two pay by the symbol, all others in full."""
    from topsecret.ledger import Picks, Price
    from topsecret.mechanisms import LimitedDomain, OptimalThreshold

    if isinstance(mechanism, LimitedDomain | OptimalThreshold):
        per_pick, share = exact(mechanism.epsilon_per_pick), exact(mechanism.delta)
        return Price(mechanism.loss, Picks(mechanism.k, per_pick, share))
    return Price(mechanism.loss)


def _metered(question: Question, budget: Metered | Flexible, mechanism: str) -> Prepared:
    """The mechanism at the price that the data set's owner fixed."""
    from topsecret.catalogue import limited_domain_at
    from topsecret.ledger import Metered

    assert isinstance(budget, Metered)
    if mechanism not in ("auto", "limited-domain"):
        raise InvalidParameter(
            f"mechanism={mechanism!r} must be 'limited-domain': the data set's budget is metered"
        )
    if question.k == "auto":
        raise InvalidParameter(
            "k='auto' needs a flexible budget: the data set's is metered; pass k=10, say"
        )
    return limited_domain_at(question, down(budget.price), down(budget.query_delta))


def _left_out(epsilon: Number | None, budget: Metered | Flexible) -> Number:
    from topsecret.ledger import Metered

    assert isinstance(budget, Metered)
    if epsilon is not None:
        raise InvalidParameter(
            f"epsilon={epsilon} must be left out: the data set's budget is metered, with "
            f"{float(budget.price):.4g} per item"
        )
    return budget.epsilon


def _needed(epsilon: Number | None) -> Number:
    if epsilon is None:
        raise InvalidParameter("epsilon is missing; 1 is a common choice")
    return epsilon


def _calibrated(mechanism: str, question: Question) -> Prepared:
    """The mechanism that spends the question's (ε, δ)."""
    from topsecret.catalogue import prepare

    if mechanism == "auto":
        from topsecret.planning.rule import recommend

        mechanism = recommend(question).name
    return prepare(mechanism, question)


def _open(source: str | os.PathLike[str] | Source) -> Source:
    if isinstance(source, str | os.PathLike):
        from topsecret.sources.duckdb import FileSource

        return FileSource(source)
    if isinstance(source, Source):
        return source
    raise InvalidParameter(
        f"source must be the path of a file or a source; found a {type(source).__name__}"
    )


def _version() -> str:
    from topsecret import __version__

    return __version__
