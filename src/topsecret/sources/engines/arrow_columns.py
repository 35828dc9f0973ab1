"""Columns of Arrow as DuckDB can read them whole: no value of them fails a scan.

Arrow's types hold more than DuckDB's: moments in seconds beyond those of microseconds, times
beyond a day, and, since nobody looks when a column is made, text that is no Unicode. Such a value
is missing, row by row. Maps, which may have one key twice, are refused by their type.
"""

from __future__ import annotations

import importlib
from typing import Any

from topsecret.errors import DataIndependentFailure

MICROSECONDS = {"s": 10**6, "ms": 10**3}
"""Of the units that are longer."""
LARGEST = 2**63 - 1
UNREAD = ("Object", "Int128")
"""Types of polars, or parts of them: of an object DuckDB would read the address in memory."""


def readable(frame: Any) -> Any:
    """The columns of a polars frame or pyarrow table, without what DuckDB would fail on."""
    arrow = importlib.import_module("pyarrow")
    if not isinstance(frame, arrow.Table):
        for name, dtype in frame.schema.items():
            if any(one in str(dtype) for one in UNREAD):
                raise _refused(name, dtype)
    table = frame if isinstance(frame, arrow.Table) else frame.to_arrow()
    for place, field in enumerate(table.schema):
        _check(field.name, field.type)
        table = table.set_column(place, field.name, readable_column(table.column(place)))
    return table


def readable_column(column: Any) -> Any:
    """The values that DuckDB can read; others are missing."""
    arrow = importlib.import_module("pyarrow")
    kind = column.type
    if isinstance(kind, arrow.DictionaryType):
        column, kind = column.cast(kind.value_type), kind.value_type
    chunks = column.chunks if isinstance(column, arrow.ChunkedArray) else [column]
    column = arrow.chunked_array([one for chunk in chunks for one in _valid(chunk)], kind)
    units = MICROSECONDS.get(getattr(kind, "unit", ""), 1)
    if arrow.types.is_timestamp(kind) and units > 1:
        return _within(column, units).cast(arrow.timestamp("us", kind.tz))
    if arrow.types.is_duration(kind) and units > 1:
        return _within(column, units).cast(arrow.duration("us"))
    return column


def _valid(chunk: Any) -> list[Any]:
    """The chunk in pieces, those that are not what their type says replaced by missing values."""
    arrow = importlib.import_module("pyarrow")
    try:
        chunk.validate(full=True)
        return [chunk]
    except arrow.ArrowInvalid:
        half = len(chunk) // 2
    return [*_valid(chunk[:half]), *_valid(chunk[half:])] if half else [arrow.nulls(1, chunk.type)]


def _within(column: Any, units: int) -> Any:
    compute = importlib.import_module("pyarrow.compute")
    arrow = importlib.import_module("pyarrow")
    number, most = column.cast(arrow.int64()), LARGEST // units
    inside = compute.and_(compute.greater_equal(number, -most), compute.less_equal(number, most))
    return compute.if_else(inside, column, arrow.scalar(None, column.type))


def _check(name: str, kind: Any) -> None:
    """Refuse what has parts that cannot be replaced one by one."""
    arrow = importlib.import_module("pyarrow")
    if not arrow.types.is_nested(kind):
        return
    waiting, parts = [kind], []
    while waiting:
        one = waiting.pop()
        parts.append(one)
        waiting += [one.field(place).type for place in range(one.num_fields)]
    bad = [
        arrow.types.is_map,
        arrow.types.is_timestamp,
        arrow.types.is_time,
        arrow.types.is_duration,
    ]
    if any(is_bad(part) for part in parts for is_bad in bad):
        raise _refused(name, kind)


def _refused(name: str, kind: Any) -> DataIndependentFailure:
    return DataIndependentFailure(
        f"the data frame's column {name!r} is of type {kind}, of which DuckDB cannot read every "
        "value; make text of it, or a column of each part"
    )
