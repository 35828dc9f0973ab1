"""``topsecret ledger check``: is the ledger what was written into it?"""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from typing import Annotated

import typer

from topsecret.cli.app import app
from topsecret.cli.place import LedgerOption, open_ledger

ledger = typer.Typer(no_args_is_help=True, help="Look after the ledger itself.")
app.add_typer(ledger, name="ledger")


@ledger.callback()
def _ledger() -> None:
    """Look after the ledger itself."""


@ledger.command()
def check(
    place: LedgerOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Verify the chain of entries, and all sums, reservations and answers against it.

    Note the printed ends of the chains elsewhere: who rewrites a whole chain changes its end.

    topsecret ledger check
    """
    report = open_ledger(place).check()
    if json:
        typer.echo(json_module.dumps(asdict(report), indent=2))
    else:
        for dataset, head in report.heads.items():
            typer.echo(f"{dataset}: the chain ends with {head}")
        for fault in report.faults:
            typer.echo(f"FAULT: {fault}")
        typer.echo(
            f"{report.entries} entries checked: "
            + (f"{len(report.faults)} faults" if report.faults else "all is as it was written")
        )
    if report.faults:
        raise typer.Exit(1)
