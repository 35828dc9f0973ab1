"""The items of a file, for engines that cannot read it themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from topsecret.sources.domains.domain import FileColumn
from topsecret.sources.domains.items_file import is_plain, plain_items
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.files import files_at
from topsecret.sources.file_form import File
from topsecret.sources.source import CountQuery
from topsecret.sources.sql.statements import column


def items_of(domain: FileColumn, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The distinct rows of these columns as text."""
    if is_plain(domain.path):
        return [(item,) for item in plain_items(domain.path)]
    # Public rows: one of them may take in others.
    several = files_at(domain.path)[0].format in ("CSV", "TSV")
    source = FileSource(File(domain.path, multiline=True) if several else domain.path)
    # The session needs some question; only the file's columns matter here.
    with source.session(CountQuery(item="item", person="person", rows=1)) as session:
        relation, _ = session.events(columns)
        values = [exp.cast(column(name, "f"), exp.DataType.Type.TEXT) for name in columns]
        listed = exp.alias_(relation, "f", table=True)
        return session.run(exp.select(*values).distinct().from_(listed))
