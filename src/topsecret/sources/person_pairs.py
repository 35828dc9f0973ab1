"""All distinct pairs of person and item of some rows: what a series counts, period by period."""

from __future__ import annotations

from collections.abc import Sequence

from topsecret.sources.session import Engine, charged, check, items_of
from topsecret.sources.source import CountQuery, Item
from topsecret.sources.sql.dialects import check_dialect
from topsecret.sources.sql.statements import person_items


def person_pairs(engine: Engine, queries: Sequence[CountQuery]) -> list[list[tuple[Item, str]]]:
    """The pairs (item, person's text) of each query's rows, of one moment of the data. Secret."""
    found: list[list[tuple[Item, str]]] = []
    with engine.session(queries[0]) as session:
        check(session, queries[0])
        for query in queries:
            with charged(after_rows=bool(found)):
                events, schema = session.events(query.columns)
                dialect = check_dialect(session.dialect)
                rows = session.run(person_items(events, query, schema, dialect))
                items = items_of(session, query, [(*row[:-1], 0) for row in rows])
                found.append(
                    [(item, str(row[-1])) for (item, _), row in zip(items, rows, strict=True)]
                )
    return found
