"""``topsecret top``: the most common items of a file."""

from __future__ import annotations

from typing import Annotated

import typer

from topsecret.cli.app import app
from topsecret.cli.place import LedgerOption, open_ledger


@app.command()
def top(
    file: Annotated[
        str, typer.Argument(help="One row per event: CSV, TSV, JSON lines (also .gz) or Parquet.")
    ],
    item: Annotated[str, typer.Option(help="The column to rank.", metavar="COLUMN")],
    person: Annotated[
        str, typer.Option(help="The column that tells persons apart.", metavar="COLUMN")
    ],
    epsilon: Annotated[
        float | None,
        typer.Option(help="Privacy budget: smaller protects more. A metered budget sets it."),
    ] = None,
    k: Annotated[
        str, typer.Option("-k", "--k", help="How many items to name at most, or auto.")
    ] = "10",
    delta: Annotated[float, typer.Option(help="Probability that the guarantee fails.")] = 1e-6,
    k_bar: Annotated[
        int | None,
        typer.Option(help="How many leading items may be looked at.", show_default="20 times k"),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help="How to choose; auto follows the public rule of topsecret plan.")
    ] = "auto",
    dataset: Annotated[
        str | None, typer.Option(help="Pay from this data set's budget (see topsecret budget).")
    ] = None,
    ledger: LedgerOption = None,
    analyst: Annotated[str | None, typer.Option(help="Pay from this analyst's allowance.")] = None,
    request_id: Annotated[
        str | None, typer.Option(help="Your name for this request: a retry is not charged again.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Name the items with the most distinct persons, with a receipt.

    topsecret top checkins.csv --item place --person user -k 10 --epsilon 1

    topsecret top events.parquet --item word --person author --epsilon 0.5 --json

    topsecret top checkins.csv --item place --person user -k 10 --dataset checkins
    """
    from topsecret.cli.length import length
    from topsecret.query import top_k

    release = top_k(
        file,
        item=item,
        person=person,
        k=length(k),
        epsilon=epsilon,
        delta=delta,
        k_bar=k_bar,
        mechanism=mechanism,
        ledger=None if dataset is None and ledger is None else open_ledger(ledger),
        dataset=dataset,
        analyst=analyst,
        request_id=request_id,
    )
    if json:
        typer.echo(release.to_json())
        return
    from topsecret.cli.render import show

    show(release)
