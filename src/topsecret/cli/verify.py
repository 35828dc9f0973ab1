"""``topsecret verify``: every mechanism against its own claim."""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from topsecret.cli.app import app

if TYPE_CHECKING:
    from rich.table import Table

    from topsecret.verify.report import PrivacyReport
    from topsecret.verify.run import Verification
    from topsecret.verify.sampler import SamplerReport


@app.command()
def verify(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(help="Names such as LimitedDomain.", show_default="all"),
    ] = None,
    items: Annotated[int, typer.Option(help="Histograms of at most this many items.")] = 4,
    max_count: Annotated[int, typer.Option(help="Counts from 0 to this.")] = 4,
    samples: Annotated[int, typer.Option(help="Answers drawn for each sampler test.")] = 10_000,
    processes: Annotated[
        int | None, typer.Option(help="Processes to use.", show_default="one for each core")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Check mechanisms exhaustively against the privacy they claim.

    The exact law of every answer is compared with the claim, on all small
    histograms and all their neighbours, and drawn answers with that law.
    The exit code is 1 if a check fails.

    topsecret verify

    topsecret verify LimitedDomain GumbelTopK --items 3
    """
    from topsecret.errors import VerificationFailed

    try:
        found = _run_with_progress(mechanisms or [], items, max_count, samples, processes)
    except VerificationFailed as failure:  # what is stated is not even a law or a claim
        typer.echo(f"topsecret: {failure}", err=True)
        raise typer.Exit(1) from None
    if json:
        typer.echo(json_text.dumps(found.to_dict(), indent=2))
    else:
        _show(found, items, max_count)
    if not found.passed:
        raise typer.Exit(1)


def _run_with_progress(
    names: list[str], items: int, max_count: int, samples: int, processes: int | None
) -> Verification:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from topsecret.verify.run import verify as run

    progress = Progress(
        TextColumn("verifying"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with progress:
        task = progress.add_task("verifying", total=None)

        def finished(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        return run(
            names,
            items=items,
            max_count=max_count,
            samples=samples,
            processes=processes,
            finished=finished,
        )


def _show(found: Verification, items: int, max_count: int) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from topsecret.cli.terminal import terminal

    console = terminal()
    console.print(
        f"Claim: on all histograms of at most {items} items with counts up to {max_count}, and of "
        f"2 items up to {found.privacy[0].tall}, for all neighbours in both directions, "
        "no divergence may exceed the claim: decided exactly. "
        "Tightest: the largest share of its claim that a divergence reached, and what was left."
    )
    if found.samplers:
        console.print(
            f"Draws: {found.samplers[0].samples:,} answers follow the exact law; correct samplers "
            f"fail this run with probability at most {found.alarm_rate:g}."
        )
    for name, reports in groupby(found.privacy, key=lambda report: _split(report.mechanism)[0]):
        console.print()
        console.print(Text(name, style="bold"))
        mine = list(reports)
        console.print(Padding(_table(mine, found.samplers), (0, 0, 0, 2)))
        console.print(Padding(Text("\n".join(_remarks(mine)), style="dim"), (0, 0, 0, 2)))
    console.print()
    for failure in found.failures():
        console.print(Text(failure, style="bold red"))
    checks = len(found.privacy) + len(found.samplers)
    failed = len(found.failures())
    verdict = f"{failed} of {checks} checks failed" if failed else f"{checks} checks passed"
    console.print(f"{verdict} in {found.seconds:.0f} s")


def _table(reports: list[PrivacyReport], samplers: tuple[SamplerReport, ...]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("parameters", overflow="fold")
    for name in ("pairs", "tightest", "left", "claim", "draws"):
        table.add_column(name, justify="right", no_wrap=True)
    drawn = {report.mechanism: _verdict(report.passed) for report in samplers}
    for report in reports:
        tightest = report.tightest
        table.add_row(
            _split(report.mechanism)[1],
            f"{report.pairs:,}",
            "" if tightest is None else f"{tightest.divergence / tightest.claim:.2%}",
            "" if tightest is None else _left(tightest.margin),
            _verdict(report.passed),
            drawn.get(report.mechanism, "–"),
        )
    return table


def _remarks(reports: list[PrivacyReport]) -> Iterator[str]:
    tightest = [report.tightest for report in reports if report.tightest is not None]
    if tightest:
        closest = max(tightest, key=lambda comparison: comparison.divergence / comparison.claim)
        yield f"tightest {closest}"
    points = sum(report.points for report in reports)
    between = max(report.between for report in reports)
    beyond = f"at most {between:.0e} is left open" if between else "nothing is left open"
    yield f"{points:,} epsilons compared; between them {beyond}"
    ties = sum(len(report.undecided) for report in reports)
    if ties:
        yield f"{ties:,} comparisons are equal to 1024 bits"


def _split(mechanism: str) -> tuple[str, str]:
    name, _, parameters = mechanism.partition("(")
    return name, parameters.removesuffix(")")


def _left(margin: float) -> str:
    return f"{margin:.1e}" if abs(margin) >= 1e-16 else "<1e-16"


def _verdict(passed: bool) -> str:
    return "ok" if passed else "FAILED"
