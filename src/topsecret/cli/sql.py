"""``topsecret sql``: paste a query, get the private answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from topsecret.cli.app import WeakPrivacyOption, app
from topsecret.cli.file_options import (
    DelimiterOption,
    EncodingOption,
    FormatOption,
    HeaderOption,
    MultilineOption,
    source_of,
)
from topsecret.cli.measure_options import MaxPerItemOption, UnitOption
from topsecret.cli.place import LedgerOption, open_ledger


@app.command("sql")
def sql_command(
    query: Annotated[
        str, typer.Argument(help="The query, a file that ends in .sql, or - for standard input.")
    ],
    source: Annotated[
        str,
        typer.Option(
            help="What it is asked of: a database's URL, a DuckDB database, or a file, which is "
            "one table whatever the query calls it."
        ),
    ],
    privacy: Annotated[
        str | None,
        typer.Option(help="The privacy file: whose rows each table holds.", metavar="FILE"),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(help="The person's column, for a query of one table.", metavar="COLUMN"),
    ] = None,
    form: FormatOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    header: HeaderOption = None,
    multiline: MultilineOption = False,
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy budget: smaller protects more.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Delta, a probability added to what epsilon allows.",
            show_default="1e-06; from a flexible budget the question's part of the budget's delta, "
            "at most 1e-06",
        ),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(help="The dialect of the text.", show_default="the engine's own"),
    ] = None,
    max_per_item: MaxPerItemOption = None,
    unit: UnitOption = "1",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what the query asks; no row is read.")
    ] = False,
    dataset: Annotated[
        str | None, typer.Option(help="Pay from this dataset's budget (see topsecret budget).")
    ] = None,
    ledger: LedgerOption = None,
    analyst: Annotated[str | None, typer.Option(help="Pay from this analyst's allowance.")] = None,
    request_id: Annotated[
        str | None, typer.Option(help="Your name for this request: a retry is not charged again.")
    ] = None,
    accept_weak_privacy: WeakPrivacyOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the items as CSV.")] = False,
) -> None:
    """Answer an SQL query that ranks items by their number of people, by rows or by a sum.

    topsecret sql "SELECT place, COUNT(DISTINCT user) AS n FROM checkins GROUP BY place ORDER BY n
    DESC LIMIT 10" --source checkins.csv --person user --epsilon 1

    topsecret sql top-products.sql --source postgresql+psycopg://host/shop --privacy privacy.toml
    --epsilon 1 --json
    """
    from topsecret.questions import sql as asking

    text, place = _text(query), source_of(source, form, delimiter, encoding, header, multiline)
    word, _, rest = text.strip().partition(" ")
    if word.upper() == "EXPLAIN":
        text, explain = rest, True
    if explain:
        told = asking.explain(
            text,
            place,
            privacy=privacy,
            person=person,
            dialect=dialect,
            max_per_item=max_per_item,
            unit=unit,
        )
        _explain(told, json)
        return
    paid = dataset is not None or ledger is not None
    answer = asking.sql(
        text,
        place,
        privacy=privacy,
        person=person,
        epsilon=epsilon,
        delta=delta,
        dialect=dialect,
        max_per_item=max_per_item,
        unit=unit,
        ledger=open_ledger(ledger) if paid else None,
        dataset=dataset,
        analyst=analyst,
        request_id=request_id,
    )
    from topsecret.cli.top import print_answer

    print_answer(answer, json, csv)


def _text(query: str) -> str:
    if query == "-":
        return sys.stdin.read()
    if query.lower().endswith(".sql") and "\n" not in query:
        from topsecret.errors import InvalidParameter

        try:
            return Path(query).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise InvalidParameter(f"{query} cannot be read; check the path") from None
    return query


def _explain(asked: object, json: bool) -> None:
    import json as writer

    assert isinstance(asked, dict)
    if json:
        typer.echo(writer.dumps(asked, indent=2, ensure_ascii=False))
        return
    for name, value in asked.items():
        if name != "rows" and value not in (None, [], False):
            typer.echo(
                f"{name}: {value if not isinstance(value, list) else ', '.join(map(str, value))}"
            )
    typer.echo(f"\nThe rows that are counted, each with its owner:\n{asked['rows']}")
