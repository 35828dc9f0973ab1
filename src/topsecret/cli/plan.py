"""``topsecret plan``: what a budget will buy, from public numbers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from topsecret.cli.app import WeakPrivacyOption, app
from topsecret.cli.measure_options import (
    MaxPerItemOption,
    MaxTotalOption,
    MeasureOption,
    SumOption,
    UnitOption,
    bound_asked,
    measure_asked,
)

if TYPE_CHECKING:
    from topsecret.planning.plan_result import Plan
    from topsecret.planning.shape import Zipf


@app.command()
def plan(
    k: Annotated[str, typer.Option("-k", "--k", help="How many items; auto, or all.")] = "10",
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy budget: smaller protects more.")
    ] = None,
    lead: Annotated[
        int | None,
        typer.Option(help="Instead of epsilon: find the one for items with this lead.", min=1),
    ] = None,
    delta: Annotated[
        float,
        typer.Option(
            help="Delta, a probability added to what epsilon allows; 0 needs --domain-size."
        ),
    ] = 1e-6,
    k_bar: Annotated[
        int | None,
        typer.Option(
            help="How many leading items may be looked at.",
            show_default="a public rule, from k alone",
        ),
    ] = None,
    max_items: Annotated[
        int | None, typer.Option(help="A cap on the items of one person.", show_default="none")
    ] = None,
    domain_size: Annotated[
        int | None,
        typer.Option(help="Size of a public list of all items.", show_default="unknown domain"),
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="The order must be part of the answer.")
    ] = False,
    fill: Annotated[
        bool, typer.Option("--fill", help="A set is completed at random to k items.")
    ] = False,
    choose: Annotated[
        str | None,
        typer.Option(
            help="How auto chooses: private looks at the data with noise, public does not.",
            show_default="private",
        ),
    ] = None,
    measure: MeasureOption = "persons",
    sum_of: SumOption = None,
    unit: UnitOption = "1",
    max_per_item: MaxPerItemOption = None,
    max_total: MaxTotalOption = None,
    shape: Annotated[
        str | None, typer.Option(help="Simulate recall on an example.", metavar="zipf:EXPONENT")
    ] = None,
    items: Annotated[int, typer.Option(help="Items of the example.")] = 10_000,
    persons: Annotated[int, typer.Option(help="People of the example.")] = 100_000,
    events: Annotated[int, typer.Option(help="Events per person of the example.")] = 10,
    runs: Annotated[int, typer.Option(help="Simulated runs per mechanism.")] = 50,
    accept_weak_privacy: WeakPrivacyOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Show what a budget will buy before anything is spent.

    No file is read: a plan is made of the numbers given here.

    topsecret plan -k 10 --epsilon 1

    topsecret plan -k 50 --lead 200

    topsecret plan -k 50 --epsilon 0.4 --delta 0 --domain-size 100000

    topsecret plan -k 20 --epsilon 0.5 --shape zipf:1.1 --items 10000 --persons 100000

    topsecret plan -k 10 --epsilon 1 --measure rows --max-per-item 3

    topsecret plan -k 10 --epsilon 1 --measure rows --shape zipf:1.1 --events 50

    With --measure rows and a shape, but without --max-per-item, a bound is proposed.
    """
    from topsecret.cli.length import length
    from topsecret.cli.progress import progress
    from topsecret.errors import InvalidParameter
    from topsecret.planning import plan as make

    if (epsilon is None) == (lead is None):
        raise InvalidParameter("give either --epsilon 1, say, or --lead 200, say")
    example = None if shape is None else _example(shape, items, persons, events)
    with progress("planning") as told:
        made = make(
            k=length(k),
            epsilon=epsilon,
            needed_lead=lead,
            delta=delta,
            k_bar=k_bar,
            max_items=max_items,
            domain_size=domain_size,
            ordered=ordered,
            fill=fill,
            choose=choose,
            measure=measure_asked(measure, sum_of, unit),
            max_per_item=bound_asked(max_per_item),
            max_total=max_total,
            shape=example,
            runs=runs,
            progress=told,
        )
    if json:
        typer.echo(made.to_json())
    else:
        _show(made)


def _example(shape: str, items: int, persons: int, events: int) -> Zipf:
    from topsecret.errors import InvalidParameter
    from topsecret.planning import Zipf

    kind, _, exponent = shape.partition(":")
    try:
        number = float(exponent)
    except ValueError:
        number = -1.0
    if kind != "zipf" or number < 0:
        raise InvalidParameter(f"shape={shape!r} must be zipf:EXPONENT; write --shape zipf:1.1")
    return Zipf(number, items, persons, events)


def _show(made: Plan) -> None:
    from rich.table import Table
    from rich.text import Text

    from topsecret.cli.terminal import terminal
    from topsecret.planning.plan_result import HEADINGS

    console = terminal()
    console.print(Text(made.title, style="bold"))
    console.print()
    narrow = console.width < 70
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("")
    for heading, right in zip(HEADINGS, (False, True, True, True, False, False), strict=True):
        if not (narrow and heading in ("noise", "over", "answer")):
            table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in made.rows:
        best = row[0] == made.recommended
        shown = (row[0], row[2], row[3]) if narrow else row
        table.add_row(
            "*" if best else " ",
            *(Text(cell, style="bold" if best else "") for cell in shown),
        )
    console.print(table)
    for sentence in (*made.sentences, made.holding):
        console.print("", Text(sentence), sep="\n")
    if made.recalls:
        console.print("", Text(made.measured), sep="\n")
        # The frame of a bar: two spaces, the name, two spaces, "1.000 ± 0.000".
        longest = max(len(row.name) for row in made.recalls)
        width = max(4, min(40, console.width - longest - 19))
        for bar in made.bars(width):
            console.print(Text(bar, overflow="crop", no_wrap=True))
