"""``topsecret budget``: open, show, share and close the budget of a dataset."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated

import typer

from topsecret.cli.app import WeakPrivacyOption, app
from topsecret.cli.place import LedgerOption, open_ledger
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import rounded_up

if TYPE_CHECKING:
    from topsecret.ledger import Flexible, Metered

budget = typer.Typer(no_args_is_help=True, help="A privacy budget for each dataset.")
app.add_typer(budget, name="budget")

Dataset = Annotated[str, typer.Argument(help="The dataset's name.", metavar="DATASET")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Queries = Annotated[int | None, typer.Option(help="How many queries (metered).")]
Picks = Annotated[int | None, typer.Option(help="How many items in all (metered).")]


@budget.command("open")
def open_(
    dataset: Dataset,
    person: Annotated[
        str, typer.Option(help="The column that identifies each person.", metavar="COLUMN")
    ],
    epsilon: Annotated[float, typer.Option(help="Total for everything that is ever asked.")],
    delta: Annotated[
        float, typer.Option(help="Total delta: probabilities added to what epsilon allows.")
    ] = 1e-6,
    queries: Queries = None,
    picks: Picks = None,
    adjacency: Annotated[
        str, typer.Option(help="add-remove, replace, or outcomes (rankings).")
    ] = "add-remove",
    ledger: LedgerOption = None,
    accept_weak_privacy: WeakPrivacyOption = False,
) -> None:
    """Open a budget: metered with --queries and --picks, flexible without.

    topsecret budget open checkins --person user --epsilon 1 --queries 10 --picks 50

    topsecret budget open checkins --person user --epsilon 1
    """
    opened = _budget(epsilon, delta, queries, picks)
    book = open_ledger(ledger)
    book.open_budget(dataset, opened, person=person, adjacency=adjacency)
    account = book.account(dataset)
    total = " and ".join(
        f"{name} {rounded_up(number)}"
        for name, number in zip(("epsilon", "delta"), account.budget.guarantee, strict=True)
    )
    left = "nothing is used yet" if account.budget.kind == "flexible" else account.summary
    typer.echo(f"{dataset}: {total} for all answers from it together; {left}")


def _budget(
    epsilon: float, delta: float, queries: int | None, picks: int | None
) -> Metered | Flexible:
    from topsecret.ledger import Flexible, Metered

    if queries is None and picks is None:
        return Flexible.of(epsilon=epsilon, delta=delta)
    if queries is None or picks is None:
        raise InvalidParameter("a metered budget needs both --queries and --picks")
    return Metered.of(epsilon=epsilon, delta=delta, queries=queries, picks=picks)


@budget.command()
def show(
    dataset: Annotated[
        str | None, typer.Argument(help="The dataset's name.", show_default="all")
    ] = None,
    ledger: LedgerOption = None,
    json: Json = False,
) -> None:
    """Show what is left, of one dataset or of all.

    topsecret budget show checkins
    """
    book = open_ledger(ledger)
    accounts = [book.account(name) for name in ([dataset] if dataset else book.datasets())]
    if json:
        records = [account.to_dict() for account in accounts]
        typer.echo(json_module.dumps(records[0] if dataset else records, indent=2))
        return
    from topsecret.cli.gauge import draw

    draw(accounts)


@budget.command()
def allow(
    dataset: Dataset,
    analyst: Annotated[str, typer.Argument(help="Who may ask.", metavar="ANALYST")],
    epsilon: Annotated[float | None, typer.Option(help="Share of a flexible budget.")] = None,
    delta: Annotated[float, typer.Option(help="Share of a flexible budget.")] = 1e-6,
    queries: Queries = None,
    picks: Picks = None,
    ledger: LedgerOption = None,
    accept_weak_privacy: WeakPrivacyOption = False,
) -> None:
    """Give an analyst an allowance; from then on only those with one may ask.

    topsecret budget allow checkins ann --queries 3 --picks 20

    topsecret budget allow checkins ann --epsilon 0.3
    """
    from fractions import Fraction

    from topsecret.ledger import Flexible

    book = open_ledger(ledger)
    if book.account(dataset).budget.kind == "metered":
        if queries is None or picks is None:
            raise InvalidParameter("a share of a metered budget needs --queries and --picks")
        limits = {"picks": Fraction(picks), "queries": Fraction(queries)}
    elif epsilon is None:
        raise InvalidParameter("a share of a flexible budget needs --epsilon")
    else:
        limits = dict(Flexible.of(epsilon=epsilon, delta=delta).limits)
    book.allow(dataset, analyst, limits)
    typer.echo(f"{analyst} may ask {dataset if all(limits.values()) else 'nothing of ' + dataset}")


@budget.command()
def history(dataset: Dataset, ledger: LedgerOption = None, json: Json = False) -> None:
    """List everything that happened, oldest first.

    topsecret budget history checkins
    """
    entries = open_ledger(ledger).history(dataset)
    if json:
        records = [
            {"position": entry.position, "time": entry.time, "event": entry.event}
            | {"body": entry.record, "hash": entry.hash}
            for entry in entries
        ]
        typer.echo(json_module.dumps(records, indent=2))
        return
    from topsecret.cli.gauge import told

    for entry in entries:
        typer.echo(told(entry))


@budget.command()
def close(dataset: Dataset, ledger: LedgerOption = None) -> None:
    """Admit nothing more; stored answers stay.

    topsecret budget close checkins
    """
    open_ledger(ledger).close_budget(dataset)
    typer.echo(f"{dataset}: closed")


@budget.command("write-off")
def write_off(
    reservation: Annotated[str, typer.Argument(help="As listed by show.", metavar="RESERVATION")],
    ledger: LedgerOption = None,
) -> None:
    """Give back a reservation in doubt, on your word as the owner that no answer got out.

    If its program still runs, that program will not show its answer.

    topsecret budget write-off RESERVATION
    """
    open_ledger(ledger).write_off(reservation)
    typer.echo(f"{reservation}: written off")
