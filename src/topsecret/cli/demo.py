"""``topsecret demo``: a file of made-up check-ins, one question, one receipt."""

from __future__ import annotations

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
    """Write a file of made-up check-ins and answer a question about it."""
    import shlex

    from topsecret.cli.render import show
    from topsecret.demo import PERSONS, ROWS, write_checkins
    from topsecret.query import top_k

    path = write_checkins(directory)
    typer.echo(f"{path}: {ROWS:,} made-up check-ins of {PERSONS:,} persons in a city.\n")
    show(top_k(path, item="place", person="user", k=10, epsilon=1.0, delta=1e-6))
    command = f"topsecret top {shlex.quote(str(path))} --item place --person user"
    typer.echo("\nTry next (with . .venv/bin/activate first): a smaller budget, a longer list")
    typer.echo(f"  {command} -k 20 --epsilon 0.5")
