"""Answers as tables for other tools: rank, items, n and plus_minus, the receipt beside them.

>>> from topsecret.results.frames import COUNTED
>>> COUNTED
('n', 'plus_minus')
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from topsecret.errors import MissingExtra
from topsecret.results.export import json_text

if TYPE_CHECKING:
    from topsecret.results.group_releases import Releases
    from topsecret.results.release import Release

RANK = "rank"
COUNTED = ("n", "plus_minus")
"""The noisy count, and the half width of its 95% interval; empty where none were asked for."""
SURELY = "at_least"
"""How many people each item surely has, where that was asked for."""
KEY = "topsecret"
"""Where a table keeps the whole answer: Arrow's metadata, as JSON, and pandas' ``attrs``."""

NUMBERS = (RANK, *COUNTED, SURELY)
Row = tuple[Any, ...]


def table_of(answer: Release | Releases) -> tuple[tuple[str, ...], list[Row]]:
    """The names of the columns and one row for each item, of each group if there are several."""
    from topsecret.results.release import Release

    if isinstance(answer, Release):
        return _list(answer)
    names: tuple[str, ...] = (answer.by, *_names("", 1))
    rows: list[Row] = []
    for group, one in answer.items():
        names, held = _list(one)
        names = (_other(answer.by, names), *names)
        rows += [(group, *row) for row in held]
    return names, rows


def to_arrow(answer: Release | Releases) -> Any:
    """A ``pyarrow.Table`` whose metadata hold the whole answer as JSON."""
    arrow = _module("pyarrow")
    names, rows = table_of(answer)
    columns = {}
    for place, name in enumerate(names):
        values = [row[place] for row in rows]
        number = name in NUMBERS
        empty = all(value is None for value in values)
        kind = arrow.int64() if number else arrow.string() if empty else None
        columns[name] = arrow.array(values, type=kind)
    return arrow.table(columns, metadata={KEY: json_text(answer.to_dict(), None)})


def to_pandas(answer: Release | Releases) -> Any:
    """A ``pandas.DataFrame`` whose ``attrs`` hold the whole answer."""
    pandas = _module("pandas")
    names, rows = table_of(answer)
    frame = pandas.DataFrame.from_records(rows, columns=list(names))
    whole = [name for name in names if name in NUMBERS]
    frame = frame.astype(dict.fromkeys(whole, "Int64"))
    frame.attrs[KEY] = answer.to_dict()
    return frame


def to_polars(answer: Release | Releases) -> Any:
    """A ``polars.DataFrame``; it has no place for a receipt."""
    polars = _module("polars")
    names, rows = table_of(answer)
    whole = dict.fromkeys(NUMBERS, polars.Int64)
    schema = [(name, whole.get(name)) for name in names]
    return polars.DataFrame(rows, schema=schema, orient="row")


def _list(release: Release) -> tuple[tuple[str, ...], list[Row]]:
    items = [item if isinstance(item, tuple) else (item,) for item in release.items]
    width = len(items[0]) if items else 1
    random = len(items) - release.filled
    rows = []
    for place, item in enumerate(items):
        rank = place + 1 if release.ordered and place < random else None
        noisy = None if release.counts is None else release.counts[place]
        within = None if noisy is None else release.half_width
        surely = () if release.at_least is None else (release.at_least[place],)
        rows.append((rank, *map(_cell, item), noisy, within, *surely))
    names = _names(release.item, width)
    return names if release.at_least is None else (*names, SURELY), rows


def _names(item: str, width: int) -> tuple[str, ...]:
    parts: Sequence[str] = item.split(", ")
    if len(parts) != width:
        parts = [item or "item"] if width == 1 else [f"item_{n}" for n in range(1, width + 1)]
    made: list[str] = []
    for part in parts:
        made.append(_other(part, (*NUMBERS, *made)))
    return (RANK, *made, *COUNTED)


def _other(name: str, used: Sequence[str]) -> str:
    """A name that is not used yet."""
    while name in used:
        name = f"{name}_"
    return name


def _cell(value: Hashable) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        pass  # raised below, outside: the error has no other as its context
    raise MissingExtra(f"this table needs the Python package {name}; install it")
