"""``topsecret reproduce``: one of the papers' tables or figures, with ours beside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from topsecret.cli.app import app


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help="Names such as E1.", show_default="all"),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of the datasets.", show_default=False)
    ] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Small versions, results in a folder of their own.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 1,
    repetitions: Annotated[
        int | None, typer.Option(help="Runs of each mechanism.", show_default="the experiment's")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Say which there are.")] = False,
) -> None:
    """Reproduce the papers' tables and figures, from a checkout of topsecret.

    Each writes a table, a picture and a page with its verdict to docs/results.

    topsecret reproduce E1

    topsecret reproduce --smoke
    """
    from topsecret.errors import InvalidParameter

    checkout = find_checkout([Path.cwd(), Path(__file__)])
    if checkout is None:
        raise InvalidParameter(
            "reproduce needs the folder 'experiments', which is part of a checkout and not of the "
            "installed package; run it inside a checkout"
        )
    if data is not None and not data.is_dir():
        raise InvalidParameter(f"data={str(data)!r} must be a folder; name the one with the data")
    words = [sys.executable, "-m", "experiments", *(experiments or []), "--seed", str(seed)]
    if repetitions is not None:
        words += ["--repetitions", str(repetitions)]
    if data is not None:
        words += ["--data", str(data.resolve())]
    words += ["--smoke"] * smoke + ["--list"] * listed
    sys.stdout.flush()
    done = subprocess.run(words, cwd=checkout, env=_environment(checkout), check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)


def find_checkout(starts: list[Path]) -> Path | None:
    """The nearest folder above any of these that holds the experiments."""
    for start in starts:
        for folder in (start, *start.resolve().parents):
            if (folder / "experiments" / "registry.py").is_file():
                return folder.resolve()
    return None


def _environment(checkout: Path) -> dict[str, str]:
    paths = [str(checkout / "src"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
