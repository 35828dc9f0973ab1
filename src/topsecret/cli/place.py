"""Which ledger a command means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from topsecret.ledger import Ledger

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="The ledger: a file, or postgresql://… Also by TOPSECRET_LEDGER.",
        metavar="PATH",
        show_default="a file in your data directory",
    ),
]


def open_ledger(place: str | None) -> Ledger:
    """The ledger that was named, or the default one."""
    from topsecret.ledger import Ledger

    return Ledger(place)
