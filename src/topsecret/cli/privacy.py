"""``topsecret privacy``: propose and check the file that says whose rows each table holds."""

from __future__ import annotations

from typing import Annotated

import typer

from topsecret.cli.app import app

privacy = typer.Typer(
    no_args_is_help=True, help="Say whose rows each table of a database holds, for topsecret sql."
)
app.add_typer(privacy, name="privacy")

SourceArgument = Annotated[
    str, typer.Argument(help="A database's URL, or a DuckDB database.", metavar="SOURCE")
]


@privacy.command()
def init(
    source: SourceArgument,
    person: Annotated[
        str,
        typer.Option(help="The table of people and its key: customers.id.", metavar="TABLE.COLUMN"),
    ],
) -> None:
    """Propose a privacy file from the database's foreign keys. No row is read.

    topsecret privacy init postgresql+psycopg://host/shop --person customers.id > privacy.toml
    """
    from topsecret.sources.relations.proposal import proposed

    typer.echo(proposed(source, person), nl=False)


@privacy.command()
def check(
    source: SourceArgument,
    file: Annotated[str, typer.Argument(help="The privacy file.", metavar="FILE")],
) -> None:
    """Say for each table whose rows they are, or what is wrong with the file. No row is read.

    topsecret privacy check shop.duckdb privacy.toml
    """
    from topsecret.sources.relations.proposal import checked

    for line in checked(source, file):
        typer.echo(line)
