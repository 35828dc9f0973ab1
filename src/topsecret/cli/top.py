"""``topsecret top``: the most common items of a file, a table or a database."""

from __future__ import annotations

from typing import Annotated, Any

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
from topsecret.cli.measure_options import (
    MaxPerItemOption,
    MaxTotalOption,
    MeasureOption,
    OrderOption,
    SumOption,
    UnitOption,
    bound_asked,
    measure_asked,
)
from topsecret.cli.place import LedgerOption, open_ledger


@app.command()
def top(
    source: Annotated[
        str,
        typer.Argument(
            help="One row per event: a file, a pattern in quotes, or - for standard input (CSV, "
            "TSV, JSON lines, Parquet), a DuckDB database, or a database's URL."
        ),
    ],
    item: Annotated[
        list[str], typer.Option(help="The column to rank; several name a tuple.", metavar="COLUMN")
    ],
    person: Annotated[
        str, typer.Option(help="The column that identifies each person.", metavar="COLUMN")
    ],
    epsilon: Annotated[
        float | None,
        typer.Option(help="Privacy budget: smaller protects more. A metered budget sets it."),
    ] = None,
    k: Annotated[
        str, typer.Option("-k", "--k", help="How many items to name at most; auto, or all.")
    ] = "10",
    delta: Annotated[
        float | None,
        typer.Option(
            help="Delta, a probability added to what epsilon allows; 0 needs a --domain.",
            show_default="1e-06; from a flexible budget the question's part of the budget's delta, "
            "at most 1e-06",
        ),
    ] = None,
    k_bar: Annotated[
        int | None,
        typer.Option(
            help="How many leading items may be looked at.",
            show_default="a public rule, from k alone",
        ),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help="How to select; auto follows the rule of topsecret plan.")
    ] = "auto",
    choose: Annotated[
        str | None,
        typer.Option(
            help="With auto: private spends a twentieth of the budget on a noisy look at the data, "
            "to choose the mechanism that suits them; public goes by public numbers alone.",
            show_default="private",
        ),
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table of a database.")] = None,
    form: FormatOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    header: HeaderOption = None,
    multiline: MultilineOption = False,
    trust_view: Annotated[
        bool,
        typer.Option(
            "--trust-view", help="The table is a view that mixes no people: take my word for it."
        ),
    ] = False,
    where: Annotated[
        list[str] | None, typer.Option(help="Count these rows only, an SQL condition.")
    ] = None,
    max_items: Annotated[
        int | None, typer.Option(help="Count at most this many items of each person.")
    ] = None,
    order: OrderOption = "most",
    rise_from: Annotated[
        list[str] | None,
        typer.Option(
            help="Rank by the rise of people from these rows (an SQL condition) to those of "
            "--where."
        ),
    ] = None,
    measure: MeasureOption = "persons",
    sum_column: SumOption = None,
    unit: UnitOption = "1",
    max_per_item: MaxPerItemOption = None,
    max_total: MaxTotalOption = None,
    at_least: Annotated[
        int | None,
        typer.Option(
            help="Name only items that have at least this many people: with 95% probability all do."
        ),
    ] = None,
    weighting: Annotated[
        str,
        typer.Option(help="With weighted people, how those with many items count: share or cap."),
    ] = "share",
    domain: Annotated[
        str | None,
        typer.Option(help="The public items: a file, LOW..HIGH, or TABLE.COLUMN.", metavar="ITEMS"),
    ] = None,
    domain_column: Annotated[
        str | None, typer.Option(help="The column of the domain's file.", metavar="COLUMN")
    ] = None,
    counts: Annotated[bool, typer.Option("--counts", help="Release noisy counts, too.")] = False,
    counts_part: Annotated[
        float | None, typer.Option(help="The part of the budget for --counts; 0.15 is usual.")
    ] = None,
    count_persons: Annotated[
        bool, typer.Option("--count-persons", help="With --counts: the number of people, too.")
    ] = False,
    counts_share: Annotated[
        float | None, typer.Option(help="Older: their share of epsilon.", hidden=True)
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="The order must be part of the answer.")
    ] = False,
    fill: Annotated[
        bool, typer.Option("--fill", help="Complete a set at random to k items, marked.")
    ] = False,
    by: Annotated[
        str | None, typer.Option(help="One list for each --group of this column.", metavar="COLUMN")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="A public value of --by; repeatable.")
    ] = None,
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="Keep each person in one group alone.")
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
    plot: Annotated[
        str | None, typer.Option(help="Draw ranked bars into this file.", metavar="PATH")
    ] = None,
) -> None:
    """Name the items with the most distinct people, with a receipt.

    topsecret top checkins.csv --item place --person user -k 10 --epsilon 1

    topsecret top 'events/*.parquet' --item word --person author --epsilon 0.5 --counts --json

    topsecret top orders.csv --item product --person customer --epsilon 1 --sum price
    --unit 0.01 --max-per-item 100

    topsecret top visits.txt --format csv --delimiter ';' --encoding latin-1 --item page
    --person customer --epsilon 1

    topsecret top postgresql+psycopg://host/shop --table visits --item page --person customer
    --epsilon 1 --max-items 20

    topsecret top checkins.csv --item place --person user -k 10 --dataset checkins
    """
    from topsecret.cli.length import length

    asked: dict[str, Any] = {
        "item": item[0] if len(item) == 1 else tuple(item),
        "person": person,
        "k": length(k),
        "epsilon": epsilon,
        "delta": delta,
        "k_bar": k_bar,
        "mechanism": mechanism,
        "table": table,
        "trust_view": trust_view,
        "where": where or (),
        "max_items": max_items,
        "domain": _domain(domain, domain_column, table),
        "counts": counts,
        "counts_part": counts_part,
        "counts_share": counts_share,
        "count_persons": count_persons,
        "at_least": at_least,
        "weighting": weighting,
        "choose": choose,
        "measure": measure_asked(measure, sum_column, unit),
        "max_per_item": bound_asked(max_per_item),
        "max_total": max_total,
        "order": order,
        "rise_from": rise_from or (),
        "ordered": ordered,
        "fill": fill,
    }
    if max_items is not None and max_items >= 1:
        typer.echo(
            f"topsecret: note: --max-items drops what a person holds beyond {max_items} items; "
            "where people hold more, the answer may be worse than without it (topsecret plan)",
            err=True,
        )
    place = source_of(source, form, delimiter, encoding, header, multiline)
    if dataset is not None or ledger is not None:
        asked |= {
            "ledger": open_ledger(ledger),
            "dataset": dataset,
            "analyst": analyst,
            "request_id": request_id,
        }
    if by is None:
        from topsecret.questions.top_k import top_k

        release = top_k(place, **asked)
        if plot is not None:
            release.plot().savefig(plot)
        print_answer(release, json, csv)
        return
    _refuse_together(plot=plot)
    from topsecret.questions.top_k import top_k_by

    releases = top_k_by(place, by=by, groups=group or [], disjoint=disjoint, **asked)
    print_answer(releases, json, csv)


def print_answer(whole: Any, json: bool, csv: bool) -> None:
    """One list, or one for each group, as a person or a machine wants it."""
    if json:
        typer.echo(whole.to_json())
    elif csv:
        typer.echo(whole.to_csv(), nl=False)
    else:
        from topsecret.cli.render import show, show_together

        if not hasattr(whole, "together"):
            show(whole)
            return
        for release in whole.values():
            show(release)
        show_together(whole.together)


def _refuse_together(**options: object) -> None:
    from topsecret.errors import InvalidParameter

    for name, value in options.items():
        if value is not None:
            raise InvalidParameter(f"--{name} cannot be used with --by; leave one out")


def _domain(text: str | None, column: str | None, table: str | None) -> Any:
    """What ``--domain`` means: a range, a column of a table, or a file."""
    if text is None:
        return None
    import re
    from pathlib import Path

    from topsecret.questions.top_k import Column, FileColumn

    numbers = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text)
    if numbers:
        return range(int(numbers[1]), int(numbers[2]) + 1)
    if table is not None and "." in text and not Path(text).exists():
        name, _, last = text.rpartition(".")
        return Column(name, last)
    return FileColumn(Path(text), () if column is None else (column,))
