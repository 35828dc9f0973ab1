"""The options that say what items are ranked by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from topsecret.questions.top_k import Sum

OrderOption = Annotated[
    str, typer.Option(help="Name the items with the most, or the least of a --domain.")
]
MeasureOption = Annotated[str, typer.Option(help="Rank by persons or by rows.")]
SumOption = Annotated[
    str | None, typer.Option("--sum", help="Rank by the sum of this column.", metavar="COLUMN")
]
UnitOption = Annotated[str, typer.Option(help="Round what is summed to 1, 0.1, 0.01 and so on.")]
MaxPerItemOption = Annotated[
    str | None,
    typer.Option(
        help="The most rows, or the largest sum, of one person for one item. 'private' has it "
        "chosen privately; of several with commas between them one is chosen privately."
    ),
]

MaxTotalOption = Annotated[
    str | None,
    typer.Option(
        help="The most that one person adds to all items together (root of the sum of squares)."
    ),
]


def bound_asked(given: str | None) -> str | list[str] | None:
    """One bound, or several of which one is chosen."""
    return [part.strip() for part in given.split(",")] if given and "," in given else given


def measure_asked(measure: str, column: str | None, unit: str) -> str | Sum:
    """The measure that the options name."""
    from topsecret.errors import InvalidParameter

    if column is None:
        if unit != "1":
            raise InvalidParameter(
                "--unit rounds what is summed; pass --sum COLUMN, or leave it out"
            )
        return measure
    if measure != "persons":
        raise InvalidParameter(f"--sum cannot be used with --measure {measure}; leave one out")
    from topsecret.questions.top_k import Sum

    return Sum(column, unit)
