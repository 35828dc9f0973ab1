"""``topsecret demo``: made-up check-ins; lists by persons, rows and a sum; what to try next."""

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
        "\nTry next: ask for 80 places with a fifth of the epsilon. Less epsilon is more noise, so "
        "that fewer than 80 are likely to be named; it adds its epsilon, too."
    )
    typer.echo(f"  {shlex.join([*words, '-k', '80', '--epsilon', '0.2'])}")
    typer.echo(
        "To see the list by minutes with its whole receipt (10 places unless -k says otherwise). "
        "Its noise is drawn anew: it may differ from the list above, and it adds its epsilon again."
    )
    more = ["--sum", "minutes", "--max-per-item", "200", "--epsilon", "1"]
    typer.echo(f"  {shlex.join([*words, *more])}")
    own = ["top", "FILE", "--item", "COLUMN", "--person", "COLUMN", "-k", "10", "--epsilon", "1"]
    typer.echo("Your own file, with a column to rank and a column that identifies each person:")
    typer.echo(f"  {shlex.join([*_program(), *own])}")


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
        f"{twice}%. That is little protection: smaller epsilons, or a ledger with a total, keep "
        "more. What the receipt says of sharing, noise and missing items holds for all three; "
        "its figures under 'Named when' are for the first list alone."
    )


def _program() -> list[str]:
    """How this program is called from here, as short as can be."""
    if Path(sys.argv[0]).name != "topsecret":
        return [sys.executable, "-m", "topsecret"]
    if shutil.which("topsecret"):
        return ["topsecret"]
    return [min(os.path.relpath(sys.argv[0]), os.path.abspath(sys.argv[0]), key=len)]
