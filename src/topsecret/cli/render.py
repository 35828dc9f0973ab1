"""A release on a terminal: a ranked table and the receipt, at any width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from topsecret.cli.terminal import terminal
from topsecret.results.export import printable, unnamed
from topsecret.results.release import Release

NARROW = 60
"""Below this width labels stand above their texts."""


def show(release: Release) -> None:
    """Print the release on standard output."""
    console = terminal()
    console.print(Text(release.title, style="bold"))
    console.print()
    console.print(_ranking(release))
    console.print()
    show_receipt(release.receipt, console)


def show_receipt(lines: Sequence[tuple[str, str]], console: Console) -> None:
    """Print what is promised: labels and texts, side by side where there is room."""
    console.print(Text("Receipt", style="bold"))
    console.print(Padding(_receipt(lines, narrow=console.width < NARROW), (0, 0, 0, 2)))


def show_together(text: str) -> None:
    """Print what several releases cost together."""
    console = terminal()
    console.print(Text("Together", style="bold"))
    console.print(Padding(Text(text), (0, 0, 0, 2)))


def _ranking(release: Release) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("rank", justify="right", style="cyan", no_wrap=True)
    table.add_column(printable(release.item), overflow="fold")
    if release.counts is not None:
        table.add_column("people", justify="right", no_wrap=True)
    if release.at_least is not None:
        table.add_column("at least", justify="right", no_wrap=True)
    for place, (rank, item) in enumerate(release.ranked()):
        cells = [Text(rank), Text(item, style="bold")]
        if release.counts is not None:
            cells.append(Text(f"{release.counts[place]:,} ± {release.half_width:,}"))
        if release.at_least is not None:
            cells.append(Text(f"{release.at_least[place]:,}"))
        table.add_row(*cells)
    if not release.complete:
        table.add_row(Text("–"), Text(unnamed(release.items), style="dim italic"))
    return Padding(table, (0, 0, 0, 2))


def _receipt(lines: Sequence[tuple[str, str]], *, narrow: bool) -> RenderableType:
    if narrow:
        return Group(*_stacked(lines))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(Text(label), Text(text))
    return grid


def _stacked(lines: Sequence[tuple[str, str]]) -> Iterator[RenderableType]:
    for label, text in lines:
        yield Text(label, style="cyan")
        yield Padding(Text(text), (0, 0, 0, 2))
