"""Ask for the most common items: the one place where source, mechanism and ledger meet.

The order of events is fixed: check the public parameters, calibrate the mechanism to the budget,
pay for the worst case if a ledger keeps the budget, ask the source for the leading counts, select,
store the answer with what it cost, and make the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from topsecret.exact.rounding import Number
from topsecret.questions.payment import budget_of, paid_for, price_of, request_for
from topsecret.questions.prepare import ask, histograms
from topsecret.results.record import from_record, to_record
from topsecret.results.release import Release
from topsecret.sources import Column, Expression, FileColumn

if TYPE_CHECKING:
    from topsecret.ledger import Ledger

__all__ = ["Column", "Expression", "FileColumn", "top_k"]


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
    budget = budget_of(ledger, dataset)
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
    request = request_for(
        asked, dataset, price_of(asked.prepared, asked.counts), analyst, request_id
    )

    def drawn() -> tuple[dict[str, object], int]:
        release, symbols = read_and_draw()
        return to_record(release), symbols

    answer, charge, when = paid_for(ledger, request, drawn)
    return replace(from_record(answer), charge=charge, time=when)
