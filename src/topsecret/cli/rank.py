"""``topsecret rank``: a private ranking from a file of comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from topsecret.cli.app import WeakPrivacyOption, app
from topsecret.cli.place import LedgerOption, open_ledger

if TYPE_CHECKING:
    from topsecret.ranking import Ranking, StrengthRanking


@app.command()
def rank(
    file: Annotated[
        str,
        typer.Argument(help="One row per comparison: CSV, TSV, JSON lines, Parquet, a database."),
    ],
    winner: Annotated[str, typer.Option(help="The column of who won.", metavar="COLUMN")],
    loser: Annotated[str, typer.Option(help="The column of who lost.", metavar="COLUMN")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget: smaller protects more.")],
    k: Annotated[
        int | None,
        typer.Option("-k", "--k", help="How many items to name.", show_default="all"),
    ] = None,
    tie: Annotated[
        str | None,
        typer.Option(help="A column that says 1, true, yes, tie or draw.", metavar="COLUMN"),
    ] = None,
    method: Annotated[
        str, typer.Option(help="strength (with error bars), counting (wins) or spectral.")
    ] = "strength",
    person: Annotated[
        str | None,
        typer.Option(
            help="The column of who decided: all of a person is protected.", metavar="COLUMN"
        ),
    ] = None,
    comparisons_per_person: Annotated[
        int | None, typer.Option(help="With --person: keep this many of each, at most.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table of a database.")] = None,
    teleport: Annotated[
        float | None,
        typer.Option(
            help="For spectral: how often the walk starts anew; 0 works if all pairs met.",
            show_default="0.3",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Delta, a probability added to what epsilon allows; for strength: Gaussian noise."
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Pay from this dataset's budget (see topsecret budget).")
    ] = None,
    ledger: LedgerOption = None,
    accept_weak_privacy: WeakPrivacyOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="For strength: print the rows as CSV.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option(help="For strength: draw the bars into this file.", metavar="PATH")
    ] = None,
) -> None:
    """Rank items by who beat whom; protects who won, or how a person voted.

    Who met whom, and how often, counts as public.

    topsecret rank matches.csv --winner winner --loser loser --epsilon 1

    topsecret rank votes.csv --winner chosen --loser other --epsilon 1 --person voter
    --comparisons-per-person 5
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
        person=person,
        comparisons_per_person=comparisons_per_person,
        table=table,
        ledger=None if dataset is None else open_ledger(ledger),
        dataset=dataset,
    )
    if csv or plot is not None:
        from topsecret.errors import InvalidParameter
        from topsecret.ranking import StrengthRanking

        if not isinstance(ranking, StrengthRanking):
            raise InvalidParameter("--csv and --plot are for --method strength; leave them out")
        if plot is not None:
            ranking.plot().savefig(plot)
        if csv:
            typer.echo(ranking.to_csv(), nl=False)
            return
    if json:
        import json as json_text

        typer.echo(json_text.dumps(ranking.to_dict(), indent=2, ensure_ascii=False))
        return
    _show(ranking)


def _show(ranking: Ranking | StrengthRanking) -> None:
    from rich.table import Table
    from rich.text import Text

    from topsecret.cli.render import show_receipt
    from topsecret.cli.terminal import terminal
    from topsecret.results.export import printable

    console = terminal()
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("rank", justify="right", style="cyan", no_wrap=True)
    table.add_column("item", overflow="fold")
    bars = _bars(ranking)
    if bars:
        table.add_column("strength", justify="right", no_wrap=True)
    for place, item in enumerate(ranking.items):
        rank = str(place + 1) if ranking.ordered else "·"
        table.add_row(rank, Text(printable(item), style="bold"), *bars[place : place + 1])
    console.print(table)
    console.print()
    show_receipt(ranking.receipt, console)


def _bars(ranking: Ranking | StrengthRanking) -> list[str]:
    """Strengths with their 95% intervals, where there are such."""
    strengths = getattr(ranking, "strengths", ())
    errors = getattr(ranking, "standard_errors", ())
    return [f"{v:+.2f} ± {1.96 * e:.2f}" for v, e in zip(strengths, errors, strict=True)]
