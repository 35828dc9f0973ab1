"""``topsecret demo``: made-up check-ins; lists by people, rows and a sum; what to try next."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import sys
from fractions import Fraction
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
    typer.echo(f"{path}: {ROWS:,} made-up check-ins of {PERSONS:,} people in a city.")
    words = [*_program(), "top", str(path), "--item", "place", "--person", "user"]
    typer.echo(
        "The ten places with the most people, as this command asks for them:\n"
        f"  {shlex.join([*words, '-k', '10', '--epsilon', '1'])}\n"
    )
    asked: Keywords = {"item": "place", "person": "user", "k": 10, "epsilon": 1.0, "delta": 1e-6}
    first = top_k(path, **asked)
    show(first)
    visits: Keywords = {**asked, "measure": "rows", "max_per_item": "private"}
    minutes: Keywords = {**asked, "measure": Sum("minutes"), "max_per_item": 200}
    releases = [first, *(top_k(path, **question) for question in (visits, minutes))]
    for release in releases[1:]:
        _brief(release)
    _together(releases)
    typer.echo(
        "\nTry next. Each of these draws its noise anew, so that its list may differ from the ones "
        "above, and adds its epsilon and delta.\n"
        "The list with the number of people of each place, noisy too:"
    )
    typer.echo(f"  {shlex.join([*words, '-k', '10', '--epsilon', '1', '--counts'])}")
    typer.echo("The list by minutes, with its whole receipt (10 places unless -k says otherwise):")
    more = ["--sum", "minutes", "--max-per-item", "200", "--epsilon", "1"]
    typer.echo(f"  {shlex.join([*words, *more])}")
    typer.echo(
        "Your own file, with a column to rank and a column that identifies each person; the first "
        "command opens a ledger with a total, which pays for each question that names it (one "
        "ledger for everything about the same people):"
    )
    column = ["--person", "COLUMN"]
    opened = ["budget", "open", "NAME", *column, "--epsilon", "2"]
    own = ["top", "FILE", "--item", "COLUMN", *column, "--epsilon", "0.5", "--dataset", "NAME"]
    for command in (opened, own):
        typer.echo(f"  {shlex.join([*_program(), *command])}")


def _brief(release: Release) -> None:
    """The items, and how much of one person counts."""
    from topsecret.results.receipt import without_or_with

    named = ", ".join(map(str, release.items)) or "nothing"
    typer.echo(f"\n{release.title} ({without_or_with(release.epsilon, release.delta)})")
    typer.echo(f"  {named}\n  {release.clipping}.")


def _together(releases: list[Release]) -> None:
    """What the answers cost whoever sees them all: sums of what is shown, rounded up."""
    from topsecret.exact.rounding import rounded_up
    from topsecret.results.receipt import best_guess

    epsilons = [rounded_up(release.epsilon) for release in releases]
    epsilon = rounded_up(sum(map(Fraction, epsilons)))
    delta = rounded_up(sum(Fraction(rounded_up(release.delta)) for release in releases))
    right = best_guess(float(epsilon), float(delta))
    twice = best_guess(2 * float(epsilon), float(delta) * (1 + math.exp(float(epsilon))))
    typer.echo(
        "\nThese three are about the same people and add up. For whoever sees them all: epsilon = "
        f"{' + '.join(epsilons)}, rounded up to {epsilon}, and delta = {delta}. A guess "
        "whether a person is in the data, right 50% of the time without the answers, is right at "
        f"most {right}% of the time with them; a guess which of two things a person did, at most "
        f"{twice}%. That is little protection: smaller epsilons give more, and a ledger with a "
        "small total keeps the sum small. What the receipt says of who is protected, of sharing, "
        "noise and missing items holds for all three (in the other two, the limit may be why an "
        "item is missing); its figures are of the first list alone. The limit 200 was part of the "
        "question, chosen before looking at the data."
    )


def _program() -> list[str]:
    """How this program is called from here, as short as can be."""
    if Path(sys.argv[0]).name != "topsecret":
        return [sys.executable, "-m", "topsecret"]
    if shutil.which("topsecret"):
        return ["topsecret"]
    return [min(os.path.relpath(sys.argv[0]), os.path.abspath(sys.argv[0]), key=len)]
