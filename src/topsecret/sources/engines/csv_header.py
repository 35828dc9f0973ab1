"""The header of a CSV file: as many lines as the engine takes for it, or none."""

from __future__ import annotations

import csv
import io
import re


def first_record(text: str, delimiter: str, *, several_lines: bool) -> list[str] | None:
    """The fields of the first record, if a quote behind a space changes nothing about its end.

    DuckDB opens a quote there, and Python's reader does not: such a quote could take in rows.

    Raises:
        csv.Error: quotes are not closed or stand within a field
    """
    lines = list(io.StringIO(text, newline=""))
    if not several_lines:  # an open quote takes in no row
        lines = re.split("[\r\n]", text, maxsplit=1)[:1]
    spaced, plain = (
        csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=skips)
        for skips in (delimiter != " ", False)
    )
    next(spaced, None)
    header = next(plain, None)
    return header if spaced.line_num == plain.line_num else None
