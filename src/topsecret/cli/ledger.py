"""``topsecret ledger check``: is the ledger what was written into it?"""

from __future__ import annotations

import json as json_module
from dataclasses import asdict, replace
from typing import Annotated

import typer

from topsecret.cli.app import app
from topsecret.cli.place import LedgerOption, open_ledger
from topsecret.errors import InvalidParameter

ledger = typer.Typer(no_args_is_help=True, help="Check the database that keeps the budgets.")
app.add_typer(ledger, name="ledger")


@ledger.callback()
def _ledger() -> None:
    """Check the database that keeps the budgets."""


@ledger.command()
def check(
    place: LedgerOption = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            help="An end of a chain that was printed before; repeatable. A ledger that never had "
            "it is an older copy, or was rewritten.",
            metavar="NAME=HEAD",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Verify the chain of entries, and all sums, reservations and answers against it.

    Note the printed ends of the chains elsewhere, and give them to --expect the next time: who
    rewrites a whole chain, or restores an older copy, has a chain that never ended so.

    topsecret ledger check
    """
    from topsecret.ledger.audit import Fault

    opened = open_ledger(place)
    report = opened.check()
    missing = []
    for text in expect or ():
        name, _, head = text.rpartition("=")
        if not name or len(head) != 64:
            raise InvalidParameter(
                f"--expect {text!r} must be NAME=HEAD, as topsecret ledger check prints them"
            )
        if not opened.had(name, head):
            missing.append(Fault(name, 0, f"the chain never ended with {head}"))
    report = replace(report, faults=(*report.faults, *missing))
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
