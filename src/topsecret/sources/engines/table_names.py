"""Names of tables and of their columns: in parts, and checked against a schema."""

from __future__ import annotations

import os
from collections.abc import Sequence

from topsecret.errors import InvalidParameter, NotInSchema, UnknownColumn


def table_parts(name: str | tuple[str, ...]) -> tuple[str, ...]:
    """A table's name in parts: ``"visits"``, ``"shop.visits"`` or ``("shop", "visits")``."""
    parts = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
    if not 1 <= len(parts) <= 3 or not all(isinstance(part, str) and part for part in parts):
        raise InvalidParameter(
            f"table={name!r} must be the name of a table; write table='visits', "
            "or ('schema', 'visits') for names with dots"
        )
    return parts


def check_columns(
    name: str, wanted: Sequence[str], columns: Sequence[str], *, apart: bool = True
) -> None:
    """Every wanted column is in the schema, which stands ``apart`` from the rows or does not."""
    for column in wanted:
        if column not in columns:
            if not apart:  # the names of the others may be a person's row
                raise UnknownColumn(f"{name} has no column {column!r}; check its columns")
            shown = ", ".join(list(columns)[:40]) + (", …" if len(columns) > 40 else "")
            raise NotInSchema(f"{name} has no column {column!r}; choose from: {shown}")


TWO_NAMES = "one database file is attached under two names; detach one of them"


def are_apart(paths: Sequence[str | None]) -> bool:
    """Whether no two paths are one file: the events might be their own public table."""
    found = [os.stat(path) for path in paths if path and os.path.exists(path)]
    return len({(one.st_dev, one.st_ino) for one in found}) == len(found)
