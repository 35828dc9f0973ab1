"""The command-line application that the command modules register with."""

from __future__ import annotations

import shutil
import warnings
from typing import Annotated

import typer

from topsecret import __version__
from topsecret.errors import WeakPrivacy

WIDTH = shutil.get_terminal_size().columns
NARROW = WIDTH < 60

app = typer.Typer(
    name="topsecret",
    no_args_is_help=True,
    # Boxes need room: below it, the plain help is easier to read.
    rich_markup_mode=None if NARROW else "rich",
    pretty_exceptions_enable=False,  # a traceback with local variables would show secrets
    context_settings={
        "help_option_names": ["-h", "--help"],
        "terminal_width": WIDTH if NARROW else None,
    },
)


def _accept_weak_privacy(accepted: bool) -> None:
    if accepted:
        warnings.simplefilter("ignore", WeakPrivacy)


WeakPrivacyOption = Annotated[
    bool,
    typer.Option(
        "--accept-weak-privacy",
        callback=_accept_weak_privacy,
        help="Print no warning about a large epsilon or delta.",
    ),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"topsecret {__version__}")
        raise typer.Exit


ENDING = """Exit codes: 0 answered, 1 a check failed or a list was cut short, 2 mistake or refusal.

topsecret COMMAND --help has more examples."""


@app.callback(epilog=ENDING)
def topsecret(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """The most common items of your data, with a proven privacy guarantee.

    Try it on made-up data, see what a budget buys, then ask your own file:

    topsecret demo

    topsecret plan -k 10 --epsilon 1

    topsecret top events.csv --item place --person user -k 10 --epsilon 1
    """
