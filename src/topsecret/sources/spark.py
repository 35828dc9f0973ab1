"""Data frames and tables of a running Spark session.

Spark's executors do the counting; the driver gets the leading rows of the ranked counts and
nothing else. PySpark is imported only when it is there already: whoever has a data frame has it.

Spark's own error texts quote rows. They end here: an error of ours is made from the kind of the
failure alone and does not carry Spark's as its context.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    MissingExtra,
    SourceError,
    UnknownColumn,
)
from topsecret.sources.source import CountQuery, Kind, LeadingCounts, Schema
from topsecret.sources.spark_jobs import attempt, run
from topsecret.sources.spark_text import numbered, position
from topsecret.sources.sql import EVENTS, leading_counts, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS: dict[str, Kind] = {
    "string": "text",
    "boolean": "boolean",
    "byte": "integer",
    "short": "integer",
    "integer": "integer",
    "long": "integer",
}
"""Spark's names of types; a column of another type is counted under its text."""


def is_data_frame(value: object) -> TypeGuard[DataFrame]:
    """Whether this is a Spark data frame, found out without importing PySpark.

    >>> is_data_frame("visits.csv")
    False
    """
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(value).__mro__
    )


class SparkSource:
    """A data frame, or a table of the running session by its name.

    ``SparkSource("sales.visits")`` reads the table in the active session, or in ``session``.
    """

    def __init__(self, events: DataFrame | str, session: SparkSession | None = None) -> None:
        if isinstance(events, str):
            self._name = events
            self._frame = _table(events, session)
        elif is_data_frame(events):
            self._name = "Spark data frame"
            self._frame = events
        else:
            raise InvalidParameter(
                "events must be a Spark data frame or the name of a table; "
                f"found a {type(events).__name__}"
            )
        if self._frame.isStreaming:
            raise InvalidParameter(
                f"{self._name} is a stream, which has no end to count to; "
                "write it to a table and pass that"
            )

    @property
    def name(self) -> str:
        """The table's name; a data frame has none."""
        return self._name

    def __repr__(self) -> str:
        return f"SparkSource({self._name!r})"

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct persons per item on the executors and return the leading rows."""
        return query.items(self._collect(lambda view: self._leading(query, view)))

    def sql(self, query: CountQuery) -> str:
        """The query that Spark is asked, for reading; ``:v0`` and so on are bound to values."""
        select = self._leading(query, EVENTS)
        return numbered(select, EVENTS, self._frame.columns, pretty=True)[0]

    def _leading(self, query: CountQuery, view: str) -> exp.Select:
        return leading_counts(table(view), query, self._schema(query), "spark")

    def _schema(self, query: CountQuery) -> Schema:
        """What the columns hold that the query reads, each of which is there once."""
        fields = attempt(lambda: self._frame.schema.fields, self._unreadable())
        names = [field.name for field in fields]
        for wanted in query.columns:
            # A pivoted frame has columns named after its rows: the others are not listed.
            if wanted not in names:
                raise UnknownColumn(f"{self._name} has no column {wanted!r}; check its schema")
            if names.count(wanted) > 1:
                raise SourceError(
                    f"{self._name} has more than one column {wanted!r}; rename one of them"
                )
        return {field.name: KINDS.get(field.dataType.typeName(), "other") for field in fields}

    def _collect(self, question: Callable[[str], exp.Select]) -> list[Any]:
        """Ask about the frame under a name of its own, which is gone afterwards."""
        view = f"topsecret_{secrets.token_hex(16)}"
        select = question(view)

        def ask() -> list[Any]:
            frame = by_position(self._frame)
            session = frame.sparkSession
            text, values = numbered(select, EVENTS, self._frame.columns)
            frame.createTempView(view)
            try:
                # One partition: ranked on the executors, where the driver would otherwise be
                # sent the leading rows of each of them.
                answer = session.sql(text, args=values).coalesce(1)
                return run(session, answer.collect, view)
            finally:
                session.catalog.dropTempView(view)

        return attempt(ask, self._unreadable())

    def _unreadable(self) -> SourceError:
        return SourceError(
            f"{self._name} could not be counted by Spark; the log of its driver says why"
        )


def by_position(frame: DataFrame) -> DataFrame:
    """The frame with its columns named by their places, and bytes as text.

    Bytes that are not UTF-8 have no text of their own: they are written as PostgreSQL does.
    """
    from pyspark.sql import functions

    numbered = frame.toDF(*(position(place) for place in range(len(frame.columns))))
    for field in numbered.schema.fields:
        if field.dataType.typeName() == "binary":
            digits = functions.lower(functions.hex(field.name))
            shown = functions.concat(functions.lit("\\x"), digits)
            numbered = numbered.withColumn(field.name, shown)
    return numbered


def _table(name: str, session: SparkSession | None) -> DataFrame:
    try:
        from pyspark.sql import SparkSession as Session
    except ImportError:
        raise MissingExtra(
            "tables of Spark need PySpark; install it with: pip install 'topsecret[spark]'"
        ) from None
    running = session or Session.getActiveSession()
    if running is None:
        raise InvalidParameter(
            f"{name!r} is a table of a Spark session, and none is running; "
            "start one, or pass it as session="
        )
    return attempt(
        lambda: running.table(name),
        DataIndependentFailure(f"Spark has no table {name!r} that it can read; check the name"),
    )
