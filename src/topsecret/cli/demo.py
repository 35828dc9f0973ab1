"""``topsecret demo``: made-up check-ins; lists by persons, rows and a sum; what to try next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topsecret.cli.app import app

if TYPE_CHECKING:
    from topsecret.questions.question import Keywords
    from topsecret.results.release import Release


@app.command()
def demo(
    directory: Annotated[
        Path, typer.Option(help="Where to write the events file.", metavar="DIRECTORY")
    ] = Path("demo"),
) -> None:
    """Write a file of made-up check-ins and answer three questions about it.

    topsecret demo

    topsecret demo --directory somewhere/else
    """
    from topsecret.cli.render import show
    from topsecret.questions.top_k import Sum, top_k
    from topsecret.sources.demo_data import PERSONS, ROWS, write_checkins

    path = write_checkins(directory)
    typer.echo(f"{path}: {ROWS:,} made-up check-ins of {PERSONS:,} persons in a city.\n")
    asked: Keywords = {"item": "place", "person": "user", "k": 10, "epsilon": 1.0, "delta": 1e-6}
    show(top_k(path, **asked))
    visits: Keywords = {**asked, "measure": "rows", "max_per_item": "private"}
    minutes: Keywords = {**asked, "measure": Sum("minutes"), "max_per_item": 200}
    for question in (visits, minutes):
        _brief(top_k(path, **question))
    typer.echo(
        "\nThese three are about the same people and add up: together at most epsilon = 3 and "
        "delta = 3e-06."
    )
    words = [*_program(), "top", str(path), "--item", "place", "--person", "user"]
    typer.echo("\nTry next, more places for less budget, and see the list end early:")
    typer.echo(f"  {shlex.join([*words, '-k', '80', '--epsilon', '0.2'])}")
    typer.echo("The list by minutes with its whole receipt:")
    more = ["--sum", "minutes", "--max-per-item", "200", "--epsilon", "1"]
    typer.echo(f"  {shlex.join([*words, *more])}")


def _brief(release: Release) -> None:
    """The items, and how one person's part is bounded."""
    from topsecret.exact.rounding import rounded_up

    named = ", ".join(map(str, release.items)) or "nothing"
    spent = rounded_up(release.epsilon, 6)
    typer.echo(f"\n{release.title}, at epsilon = {spent}:")
    typer.echo(f"  {named}\n  {release.clipping}.")


def _program() -> list[str]:
    """How this program is called from here."""
    if Path(sys.argv[0]).name != "topsecret":
        return [sys.executable, "-m", "topsecret"]
    return ["topsecret" if shutil.which("topsecret") else os.path.relpath(sys.argv[0])]
