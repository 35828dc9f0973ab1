"""Data frames as declared columns: their dtypes say what they hold, never their rows.

DuckDB reads a pandas categorical of whole numbers as floats as soon as one row has no value, and
guesses what a column of objects holds. Here a categorical is what its categories are declared to
be, and a column of objects is text, value by value.

What pandas itself inferred when the frame was made is beyond this: a missing value makes floats of
whole numbers, for everybody. Frames that are loaded with declared dtypes have no such moment.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.exact.equal_values import equal_text
from topsecret.sources.engines.arrow_columns import (
    LARGEST,
    MICROSECONDS,
    check_type,
    readable,
    readable_column,
)
from topsecret.sources.engines.sqlite import name_of
from topsecret.sources.sql.dialects import MARK

INFERRED = "the dtypes of the data frame were declared, not inferred from its rows"
"""What the guarantee rests on, for a frame whose making nobody saw."""


def names_of(frame: Any) -> list[str]:
    """The names of the columns, as often as they occur."""
    names = getattr(frame, "column_names", None)  # pyarrow
    return [str(name) for name in (frame.columns if names is None else names)]


def declared(frame: Any, columns: Sequence[str], person: str) -> Any:
    """The columns of the frame that are wanted, with types that no row decides."""
    names = names_of(frame)
    for name in columns:
        if names.count(name) > 1:
            raise SourceError(
                f"the data frame has more than one column {name!r}; rename one of them"
            )
    if type(frame).__module__.split(".")[0] != "pandas":
        return readable(frame.select(list(columns)))  # polars and pyarrow declare all types
    pandas = _pandas()
    places = [names.index(name) for name in columns]
    series = [frame.iloc[:, place] for place in places]
    read = {name: _column(one, name == person) for name, one in zip(columns, series, strict=True)}
    return pandas.DataFrame(read, index=pandas.RangeIndex(len(frame)))


def _column(series: Any, is_person: bool) -> Any:
    """The values with a type of their own: of their categories, or text for objects."""
    pandas = _pandas()
    dtype = series.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        dtype = dtype.categories.dtype
        if pandas.api.types.is_integer_dtype(dtype) or pandas.api.types.is_bool_dtype(dtype):
            return _by_codes(series)
        series = series.astype(dtype)
    if isinstance(dtype, pandas.SparseDtype | pandas.PeriodDtype | pandas.IntervalDtype):
        raise DataIndependentFailure(
            f"the data frame's column {series.name!r} is of dtype {dtype}, which cannot be read; "
            "make text or whole numbers of it"
        )
    if isinstance(dtype, pandas.ArrowDtype):
        check_type(str(series.name), dtype.pyarrow_dtype)
        return pandas.arrays.ArrowExtensionArray(readable_column(series.array.__arrow_array__()))
    if getattr(dtype, "storage", None) == "pyarrow":
        return pandas.array(readable_column(series.array.__arrow_array__()), dtype=dtype)
    if dtype.kind in "mM":
        if is_person and isinstance(dtype, pandas.DatetimeTZDtype) and dtype.unit == "ns":
            raise DataIndependentFailure(
                f"the data frame's column {series.name!r} cannot identify people: DuckDB reads "
                "moments with a zone without their nanoseconds; make text or whole numbers of it"
            )
        return _in_microseconds(series)
    if not pandas.api.types.is_object_dtype(dtype) and not _is_python_text(dtype):
        return series.array
    texts = [
        None if _is_missing(value) else _text(value, is_person)
        for value in series.to_numpy(dtype=object)
    ]
    return pandas.Series(texts, dtype=object).array


def _in_microseconds(series: Any) -> Any:
    """Moments and durations as DuckDB counts them: what is further off than that is missing."""
    pandas = _pandas()
    values = series.array.asi8
    units = MICROSECONDS.get(series.array.unit, 1)
    outside = (values > LARGEST // units) | (values < -(LARGEST // units))
    kept = pandas.Series(series.array).mask(outside)
    return kept.dt.as_unit("us").array if units > 1 else kept.array


def _is_missing(value: Any) -> bool:
    """Whether a value of a column of objects is none: of one that cannot say, it is one."""
    try:
        return _pandas().isna(value) is True
    except Exception:  # an object's own code; a signalling NaN of decimals
        return False


def holds_objects(frame: Any, name: str) -> bool:
    """Whether a column of pandas is read value by value, so that its texts may have a mark."""
    names = names_of(frame)
    if type(frame).__module__.split(".")[0] != "pandas" or name not in names:
        return False
    dtype = frame.iloc[:, names.index(name)].dtype
    if isinstance(dtype, _pandas().CategoricalDtype):
        dtype = dtype.categories.dtype
    if isinstance(dtype, _pandas().ArrowDtype):  # some of which pandas itself cannot judge
        return False
    return bool(_pandas().api.types.is_object_dtype(dtype) or _is_python_text(dtype))


def _by_codes(series: Any) -> Any:
    """The whole numbers or truth values of a categorical, exactly: a cast would pass by floats."""
    pandas = _pandas()
    codes = series.cat.codes.to_numpy()
    missing = codes < 0
    known = series.cat.categories.to_numpy()
    values = known[codes.clip(min=0)] if len(known) else codes
    if known.dtype.kind == "b":
        return pandas.arrays.BooleanArray(values.astype("bool"), missing)
    return pandas.arrays.IntegerArray(values.astype(f"{known.dtype.kind}8"), missing)


def _pandas() -> Any:
    """The package, which whoever has a frame has imported."""
    return sys.modules["pandas"]


def _is_python_text(dtype: Any) -> bool:
    """Text kept as Python's own objects, which may hold what is no Unicode."""
    return getattr(dtype, "storage", None) == "python"


def _text(value: Any, is_person: bool) -> str | None:
    """A value's text. People of two types are two people: 1 and "1" are two, 1 and 1.0 one."""
    if issubclass(type(value), str):  # what the object itself says of its class is its own code
        text = str.__str__(value)  # of an enumeration, too, what it is equal to
        if is_person and text.startswith(MARK):
            text = f"{MARK}text:{text}"
    elif is_person:
        known = equal_text(value)
        if known is None:
            return None
        text = MARK + known
    else:
        text = _shown(value) or type(value).__name__
    # Half of a surrogate pair is no character: DuckDB would fail on it, in whosever row it is.
    return name_of(text.encode("utf-8", "surrogatepass"))


def _shown(value: Any) -> str | None:
    try:
        return str.__str__(str(value))  # no text with code of its own
    except Exception:  # an object's own code, which one row must not fail by
        return None
