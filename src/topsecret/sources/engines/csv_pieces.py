"""CSV files are read in one piece each: between two, DuckDB can lose rows.

Where DuckDB reads several pieces and a row that breaks the format begins the last of them, it drops
the rows behind it and says nothing; a piece that starts within a quoted field of many lines may
take them for rows. (The option ``parallel = false`` is no help: it drops a row whose quotes are
never closed.)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from sqlglot import exp

from topsecret.errors import SourceError
from topsecret.sources.engines.files import EventFile

LARGEST_PIECE = 1 << 30
"""Bytes of a text file with columns, which is read in one piece."""
MARGIN = 1 << 20
"""What the buffer for a file in one piece has beside its bytes."""


def piece_of(files: Sequence[EventFile], name: str) -> int:
    """Bytes that hold the largest of these files; more than DuckDB should hold are refused."""
    sizes = [
        # Of a file that is not packed the system knows it.
        os.stat(file.path).st_size if file.compression == "none" else file.size(LARGEST_PIECE)
        for file in files
    ]
    if max(sizes) > LARGEST_PIECE:
        raise SourceError(
            f"{name} holds more than 1 GiB of text: split it into several files, each "
            "with the header, and name them by a pattern (visits/*.csv), or convert it to "
            "Parquet"
        )
    return max(sizes) + MARGIN


def in_one_piece(statement: exp.Expression, piece: Callable[[], int]) -> exp.Expression:
    """The statement, in which every CSV file is read with a buffer that holds all of it.

    A scan that has a buffer of its own keeps it. Only where one has none is the ``piece`` measured,
    which reads persons' rows; 0 if none of their files is such a file.
    """
    reads = any(map(_has_no_buffer, statement.find_all(exp.Anonymous)))
    if not reads or not (bytes_ := piece()):
        return statement
    whole, size = statement.copy(), exp.convert(bytes_)
    for node in list(whole.find_all(exp.Anonymous)):
        if _has_no_buffer(node):
            node.append("expressions", exp.EQ(this=exp.var("buffer_size"), expression=size.copy()))
    return whole


def _has_no_buffer(node: exp.Anonymous) -> bool:
    return node.this == "READ_CSV" and not any(
        isinstance(one, exp.EQ) and one.this.name == "buffer_size" for one in node.expressions
    )
