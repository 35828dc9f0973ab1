"""``topsecret demo``: a file of made-up check-ins, one question, one receipt, what to try next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from topsecret.cli.app import app


@app.command()
def demo(
    directory: Annotated[
        Path, typer.Option(help="Where to write the events file.", metavar="DIRECTORY")
    ] = Path("demo"),
) -> None:
    """Write a file of made-up check-ins and answer a question about it.

    topsecret demo

    topsecret demo --directory somewhere/else
    """
    from topsecret.cli.render import show
    from topsecret.questions.top_k import top_k
    from topsecret.sources.demo_data import PERSONS, ROWS, write_checkins

    path = write_checkins(directory)
    typer.echo(f"{path}: {ROWS:,} made-up check-ins of {PERSONS:,} persons in a city.\n")
    show(top_k(path, item="place", person="user", k=10, epsilon=1.0, delta=1e-6))
    words = [*_program(), "top", str(path), "--item", "place", "--person", "user"]
    typer.echo("\nTry next, more places for less budget, and see the list end early:")
    typer.echo(f"  {shlex.join([*words, '-k', '80', '--epsilon', '0.2'])}")
    typer.echo("By visits, of which at most three of a person count for a place:")
    rows = ["--measure", "rows", "--max-per-item", "3", "--epsilon", "1"]
    typer.echo(f"  {shlex.join([*words, *rows])}")
    typer.echo("By minutes, of which at most 200 of a person count for a place:")
    minutes = ["--sum", "minutes", "--max-per-item", "200", "--epsilon", "1"]
    typer.echo(f"  {shlex.join([*words, *minutes])}")


def _program() -> list[str]:
    """How this program is called from here."""
    if Path(sys.argv[0]).name != "topsecret":
        return [sys.executable, "-m", "topsecret"]
    return ["topsecret" if shutil.which("topsecret") else os.path.relpath(sys.argv[0])]
