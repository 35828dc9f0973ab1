"""Columns of Arrow as DuckDB can read them whole: no value of them fails a scan.

Arrow's types hold more than DuckDB's: moments in seconds beyond those of microseconds, days beyond
those of 32 bits, times beyond a day, and, since nobody looks when a column is made, text that is no
Unicode. Such a value is missing, row by row. Types whose values cannot be replaced one by one are
refused, as maps are, which may have one key twice.
"""

from __future__ import annotations

import importlib
from typing import Any

from topsecret.errors import DataIndependentFailure

MICROSECONDS = {"s": 10**6, "ms": 10**3}
"""Of the units that are longer."""
LARGEST = 2**63 - 1
LARGEST_DATE = (2**31 - 1) * 86_400_000
"""Milliseconds of the last day that has a number of DuckDB's: later ones would begin anew."""
UNREAD = {"Object", "Int128", "UInt128"}
"""Types of polars, or parts of them: of an object DuckDB would read the address in memory."""


def readable(frame: Any) -> Any:
    """The columns of a polars frame or pyarrow table, without what DuckDB would fail on."""
    arrow = importlib.import_module("pyarrow")
    if not isinstance(frame, arrow.Table):
        for name, dtype in frame.schema.items():
            if any(str(part.base_type()) in UNREAD for part in _parts(dtype)):
                raise _refused(name, dtype)
    table = frame if isinstance(frame, arrow.Table) else frame.to_arrow()
    for place, field in enumerate(table.schema):
        check_type(field.name, field.type)
        table = table.set_column(place, field.name, readable_column(table.column(place)))
    return table


def _parts(dtype: Any) -> list[Any]:
    """A type of polars and those that it is made of."""
    inner = [getattr(dtype, "inner", None), *(one.dtype for one in getattr(dtype, "fields", ()))]
    return [dtype, *(part for one in inner if one is not None for part in _parts(one))]


def readable_column(column: Any) -> Any:
    """The values that DuckDB can read; others are missing."""
    arrow = importlib.import_module("pyarrow")
    chunks = column.chunks if isinstance(column, arrow.ChunkedArray) else [column]
    kind = _taken(column.type)
    if isinstance(kind, arrow.DictionaryType):
        chunks, kind = [_looked_up(chunk) for chunk in chunks], _taken(kind.value_type)
    elif kind != column.type:
        chunks = [chunk.cast(kind) for chunk in chunks]
    column = arrow.chunked_array([one for chunk in chunks for one in _valid(chunk)], kind)
    units = MICROSECONDS.get(getattr(kind, "unit", ""), 1)
    if arrow.types.is_timestamp(kind) and units > 1:
        return _within(column, LARGEST // units).cast(arrow.timestamp("us", kind.tz))
    if arrow.types.is_duration(kind) and units > 1:
        return _within(column, LARGEST // units).cast(arrow.duration("us"))
    if arrow.types.is_date64(kind):
        return _within(column, LARGEST_DATE).cast(arrow.date32())
    return column


def _looked_up(chunk: Any) -> Any:
    """The values of a dictionary's codes; a code that it has not is missing."""
    arrow = importlib.import_module("pyarrow")
    compute = importlib.import_module("pyarrow.compute")
    values = chunk.dictionary.cast(_taken(chunk.dictionary.type))
    codes = chunk.indices.cast(arrow.int64(), safe=False)
    known = compute.and_(compute.greater_equal(codes, 0), compute.less(codes, len(values)))
    return values.take(compute.if_else(known, codes, arrow.scalar(None, arrow.int64())))


def _taken(kind: Any) -> Any:
    """The type whose values can be taken by their places."""
    arrow = importlib.import_module("pyarrow")
    views = {arrow.string_view(): arrow.large_string(), arrow.binary_view(): arrow.large_binary()}
    return views.get(kind, kind)


def _valid(chunk: Any) -> list[Any]:
    """The chunk in pieces, those that are not what their type says replaced by missing values."""
    arrow = importlib.import_module("pyarrow")
    try:
        chunk.validate(full=True)
        return [chunk]
    except arrow.ArrowInvalid:
        half = len(chunk) // 2
    if chunk.type in {arrow.string(), arrow.large_string()}:
        return [_unicode(chunk)]
    if not half:
        return [arrow.nulls(1, chunk.type)]
    pieces = [chunk[:half], chunk[half:]]
    if arrow.types.is_nested(chunk.type):  # of a slice the parts of all rows would be looked at
        places = (range(half), range(half, len(chunk)))
        pieces = [chunk.take(arrow.array(one, arrow.int64())) for one in places]
    return [one for piece in pieces for one in _valid(piece)]


def _unicode(chunk: Any) -> Any:
    """The texts that are some."""
    arrow = importlib.import_module("pyarrow")
    compute = importlib.import_module("pyarrow.compute")
    texts = [
        one is None or _is_unicode(one) for one in chunk.cast(arrow.large_binary()).to_pylist()
    ]
    return compute.if_else(arrow.array(texts), chunk, arrow.scalar(None, chunk.type))


def _is_unicode(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _within(column: Any, most: int) -> Any:
    compute = importlib.import_module("pyarrow.compute")
    arrow = importlib.import_module("pyarrow")
    number = column.cast(arrow.int64())
    inside = compute.and_(compute.greater_equal(number, -most), compute.less_equal(number, most))
    return compute.if_else(inside, column, arrow.scalar(None, column.type))


def check_type(name: str, kind: Any) -> None:
    """Refuse a type unless every value of it can be read, or replaced by a missing one."""
    arrow = importlib.import_module("pyarrow")
    is_a = arrow.types
    waiting, within, coded = [kind], False, False
    while waiting:
        one = waiting.pop()
        lists = (is_a.is_list(one), is_a.is_large_list(one), is_a.is_fixed_size_list(one))
        if any(lists) or is_a.is_struct(one):
            within = True
            waiting += [one.field(place).type for place in range(one.num_fields)]
        elif isinstance(one, arrow.DictionaryType) and not within and not coded:
            coded = True
            waiting.append(one.value_type)
        elif isinstance(one, arrow.BaseExtensionType):
            if within or coded or one.extension_name not in {"arrow.bool8", "arrow.uuid"}:
                raise _refused(name, kind)
        else:
            known = (is_a.is_primitive, is_a.is_decimal, is_a.is_fixed_size_binary)
            plain = any(is_one(one) for is_one in known) or one in _texts(arrow)
            timed = is_a.is_temporal(one) and not is_a.is_date(one)
            if not plain or (within and timed):
                raise _refused(name, kind)


def _texts(arrow: Any) -> set[Any]:
    texts = {arrow.string(), arrow.large_string(), arrow.string_view(), arrow.null()}
    return texts | {arrow.binary(), arrow.large_binary(), arrow.binary_view()}


def _refused(name: str, kind: Any) -> DataIndependentFailure:
    return DataIndependentFailure(
        f"the data frame's column {name!r} is of type {kind}, of which DuckDB cannot read every "
        "value; make text of it, or a column of each part"
    )
