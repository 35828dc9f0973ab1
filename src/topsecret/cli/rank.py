"""``topsecret rank``: a private ranking from a file of comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from topsecret.cli.app import app

if TYPE_CHECKING:
    from topsecret.ranking import Ranking


@app.command()
def rank(
    file: Annotated[
        str, typer.Argument(help="One row per comparison: CSV, TSV, JSON lines or Parquet.")
    ],
    winner: Annotated[str, typer.Option(help="The column of who won.", metavar="COLUMN")],
    loser: Annotated[str, typer.Option(help="The column of who lost.", metavar="COLUMN")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget: smaller protects more.")],
    k: Annotated[
        int | None,
        typer.Option("-k", "--k", help="How many items to name.", show_default="all (counting)"),
    ] = None,
    tie: Annotated[
        str | None,
        typer.Option(help="A column that says 1, true, yes, tie or draw.", metavar="COLUMN"),
    ] = None,
    method: Annotated[
        str, typer.Option(help="counting (wins) or spectral (wins weighed by the loser).")
    ] = "counting",
    teleport: Annotated[
        float | None,
        typer.Option(
            help="For spectral: how often the walk starts anew; 0 works if all pairs met.",
            show_default="0.3",
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="For spectral: probability that the guarantee fails.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Rank items by who beat whom; protects the outcome of every single comparison.

    Who met whom, and how often, counts as public.

    topsecret rank matches.csv --winner winner --loser loser -k 10 --epsilon 1
    """
    from topsecret.questions.rank_file import rank_file

    chosen: Any = method  # checked by rank_file
    ranking = rank_file(
        file,
        winner=winner,
        loser=loser,
        epsilon=epsilon,
        k=k,
        tie=tie,
        method=chosen,
        teleport=teleport,
        delta=delta,
    )
    if json:
        import json as json_text

        typer.echo(json_text.dumps(ranking.to_dict(), indent=2, ensure_ascii=False))
        return
    _show(ranking)


def _show(ranking: Ranking) -> None:
    from rich.table import Table
    from rich.text import Text

    from topsecret.cli.render import show_receipt
    from topsecret.cli.terminal import terminal
    from topsecret.results.release import printable

    console = terminal()
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("rank", justify="right", style="cyan", no_wrap=True)
    table.add_column("item", overflow="fold")
    for place, item in enumerate(ranking.items, start=1):
        table.add_row(str(place) if ranking.ordered else "·", Text(printable(item), style="bold"))
    console.print(table)
    console.print()
    show_receipt(ranking.receipt, console)
