"""What DuckDB's types hold, and which of them can identify people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.sources.source import Columns, Kind, Schema

# Kept as they are; every other type is counted under its text, which always exists: a timestamp
# may be out of Python's range, a list is not hashable, and neither may make a query fail.
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
TIMES = (
    "TIMESTAMP",
    "TIMESTAMP_S",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP WITH TIME ZONE",
)
KINDS: dict[str, Kind] = {
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    **dict.fromkeys(INTEGERS, "integer"),
    # UHUGEINT is none: DuckDB fails where it compares one beyond HUGEINT with a negative number.
    **dict.fromkeys((f"U{name}" for name in INTEGERS[:-1]), "integer"),
    "DATE": "date",
    **dict.fromkeys(TIMES, "timestamp"),
    "FLOAT": "float",
    "DOUBLE": "float",
}

CANONICAL = re.compile(
    r"VARCHAR|BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DECIMAL\(\d+,\d+\)|FLOAT|DOUBLE|DATE|TIME|"
    r"TIMESTAMP(_NS| WITH TIME ZONE)?|UUID|BLOB|BIT|ENUM\(.*\)",
    re.DOTALL,
)
"""Types where different values have different texts and equal ones the same (of floats once zeros
have no sign). Not lists or structs, not JSON, not UNION or VARIANT, where 1 and '1' look alike, and
not times of seconds or milliseconds, some of which have no text.
"""


NAMES = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
"""Names of fields and values of an ENUM within the name of a type."""


def kinds(types: Mapping[str, str]) -> Schema:
    """What columns of these DuckDB types hold."""
    return Columns(
        {name: _kind(type_name) for name, type_name in types.items()},
        zeros={name for name, type_name in types.items() if type_name in {"FLOAT", "DOUBLE"}},
        unclear={n for n, type_name in types.items() if not CANONICAL.fullmatch(type_name)},
        zoned={n for n, type_name in types.items() if type_name == "TIMESTAMP WITH TIME ZONE"},
    )


def check_texts(
    source: str, columns: Iterable[str], types: Mapping[str, str], *, apart: bool = True
) -> None:
    """None of these columns holds times in lists or records, some of which have no text.

    ``apart`` says whether the types stand apart from the rows.
    """
    for name in columns:
        if may_lack_a_text(types.get(name, "")):
            raise (DataIndependentFailure if apart else SourceError)(
                f"the column {name!r} of {source} holds times in lists, records or variants, some "
                "of which DuckDB cannot write; make a column of plain times or text of it"
            )


def may_lack_a_text(type_name: str) -> bool:
    """Whether DuckDB fails to write one of the type's values, in whosever row it is."""
    plain = NAMES.sub("", type_name)
    return plain not in TIMES and re.search(r"\b(TIMESTAMP|VARIANT)", plain) is not None


def _kind(type_name: str) -> Kind:
    return "decimal" if type_name.startswith("DECIMAL(") else KINDS.get(type_name, "other")
