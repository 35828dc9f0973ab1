"""Data frames and tables of a running Spark session.

Spark's executors do the counting; the driver gets the leading rows of the ranked counts and
nothing else. PySpark is imported only when it is needed: whoever has a data frame has it.

Spark's own error texts quote rows. They end here: an error of ours is made from the kind of the
failure alone and does not carry Spark's as its context.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    MissingExtra,
    SourceError,
    UnknownColumn,
)
from topsecret.sources import session as asking
from topsecret.sources.domains.domain import Column, FileColumn
from topsecret.sources.engines.duckdb import private_domain
from topsecret.sources.engines.duckdb_relations import trusted
from topsecret.sources.engines.spark_jobs import attempt, run
from topsecret.sources.engines.spark_leaves import leaves, runs_code
from topsecret.sources.engines.spark_plans import FLOATS, check_plan
from topsecret.sources.engines.spark_text import plain, worded
from topsecret.sources.session import Relation, Rows
from topsecret.sources.source import Columns, CountQuery, Kind, LeadingCounts, Schema
from topsecret.sources.sql.statements import table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import SparkSession as Spark

KINDS: dict[str, Kind] = {
    "string": "text",
    "binary": "text",
    "boolean": "boolean",
    "byte": "integer",
    "short": "integer",
    "integer": "integer",
    "long": "integer",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "float": "float",
    "double": "float",
    "decimal": "decimal",
}
"""Spark's names of types; a column of another type is counted under its text."""

CANONICAL = set(KINDS) - {"timestamp", "float", "double"}
"""Types where different values have different texts. Not times with the session's zone, which are
written alike for two moments when the clock goes back, nor floats (0.0 and -0.0 are equal), nor
lists, where ["a, b"] looks like ["a", "b"], nor variants."""

ROW_BY_ROW = "code that made the frame's rows looked at one person's rows at a time"
"""What the guarantee rests on for the rows of an RDD, whose code nobody has read."""

TYPES = {str: "string", int: "bigint", bool: "boolean"}


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
    """A data frame, or a table by its name: ``SparkSource("sales.visits", session)``.

    Parameters: ``events``: the data frame, or the table's name; ``session``: where the name is
    looked up; the active one without it; ``trust_view``: the data owner's word that each row
    depends on its own person alone.
    """

    def __init__(
        self,
        events: DataFrame | str | tuple[str, ...],
        session: Spark | None = None,
        *,
        trust_view: bool = False,
    ) -> None:
        self._trusted = trust_view
        if isinstance(events, str | tuple):
            self._frame = _table(events, session or _active())
            self.name = events if isinstance(events, str) else ".".join(events)
        elif is_data_frame(events):
            self._frame = events
            self.name = "Spark data frame"
        else:
            raise InvalidParameter(
                "events must be a Spark data frame or the name of a table; "
                f"found a {type(events).__name__}"
            )
        if self._frame.isStreaming:
            raise InvalidParameter(
                f"{self.name} is a stream, which has no end to count to; "
                "write it to a table and pass that"
            )

    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self._frame.columns)

    def __repr__(self) -> str:
        return f"SparkSource({self.name!r})"

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the data. Public."""
        if self._trusted:
            return (trusted(self.name),)
        failure = SourceError(f"the plan of {self.name} cannot be read; check the session")
        return (ROW_BY_ROW,) if attempt(lambda: runs_code(self._frame), failure) else ()

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct people per item on the executors and return the leading rows."""
        return asking.leading_counts(self, query)

    def sql(self, query: CountQuery) -> str:
        """The query that Spark is asked, for reading; ``:v0`` and so on stand for values."""
        with self.session(query) as session:
            return worded(asking.statement(session, query), pretty=True)[0]

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[SparkStatements]:
        """Statements about the frame; their views and kept tables are gone afterwards."""
        person = None if self._trusted else query.person
        statements = SparkStatements(self._frame, self.name, person)
        try:
            yield statements
        finally:
            statements.close()


class SparkStatements:
    """Statements about temporary views that nobody else can guess."""

    dialect = "spark"

    def __init__(self, frame: DataFrame, name: str, person: str | None = None) -> None:
        self._frame = frame
        self._name = name
        self._person = person
        self._spark = frame.sparkSession
        self._label = f"topsecret_{secrets.token_hex(16)}"
        self._views: list[str] = []
        self._events: exp.Expression | None = None

    def events(self, columns: Sequence[str]) -> Relation:
        """The frame of events, whose plan must pass the analysis unless it is trusted."""
        schema = self._schema(self._frame, columns, self._name)
        if self._events is None:
            person = self._person
            if person is not None:
                attempt(lambda: check_plan(self._frame, person, self._name), self._failure())
            self._events = self._view(self._frame)
        return self._events.copy(), schema

    def schema(self, columns: Sequence[str]) -> Schema:
        """What the columns of the events hold, which the catalogue knows."""
        return self.events(columns)[1]

    def other(self, domain: Column | FileColumn, columns: Sequence[str]) -> Relation:
        """Another table of the Spark session, or a file of items that this process reads."""
        if isinstance(domain, Column):
            frame = _table(domain.table, self._spark)
            schema = self._schema(frame, columns, str(domain.table))
            both = attempt(lambda: leaves(frame) & leaves(self._frame), self._failure())
            if both:
                raise InvalidParameter(private_domain(str(domain.table)))
            return self._view(frame), schema
        from topsecret.sources.domains.file_items import items_of

        rows = items_of(domain, columns)
        return self.upload(rows, columns), dict.fromkeys(columns, "text")

    def upload(self, rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> exp.Expression:
        """A view of these public rows."""
        types = [TYPES[type(value)] for value in rows[0]] if rows else ["string"] * len(names)
        schema = ", ".join(f"`{plain(n)}` {t}" for n, t in zip(names, types, strict=True))
        frame = attempt(
            lambda: self._spark.createDataFrame(list(rows), schema),
            InvalidParameter("an item of the domain is no value that Spark can hold; leave it out"),
        )
        return self._view(frame)

    def keep(self, select: exp.Select) -> exp.Expression:
        """A view of the result, which the executors hold.

        A checkpoint and not a cache: of what an executor has lost a cache would be computed
        again, perhaps from other rows; a checkpoint fails.
        """
        text, values = worded(select)

        def kept() -> DataFrame:
            return run(
                self._spark,
                lambda: self._spark.sql(text, args=values).localCheckpoint(eager=True),
                self._label,
            )

        return self._view(attempt(kept, self._failure()))

    def once(self, select: exp.Select) -> exp.Select:
        """The rows of a checkpoint."""
        return exp.select("*").from_(self.keep(select))

    def run(self, select: exp.Expression) -> Rows:
        """The rows; a progress bar appears on a terminal when it takes long."""
        text, values = worded(select)

        def ask() -> list[Any]:
            answer = self._spark.sql(text, args=values)
            if select.args.get("limit"):
                # Ranked on the executors: the driver would otherwise be sent the leading rows
                # of every partition.
                answer = answer.coalesce(1)
            return run(self._spark, answer.collect, self._label)

        return [tuple(row) for row in attempt(ask, self._failure())]

    def close(self) -> None:
        """Drop the views and let go of the kept tables, whatever has happened."""

        def drop() -> None:
            for name in self._views:
                self._spark.catalog.dropTempView(name)

        # A driver that is gone has dropped them itself.
        with contextlib.suppress(SourceError):
            attempt(drop, self._failure())

    def _view(self, frame: DataFrame) -> exp.Expression:
        name = f"{self._label}_{len(self._views)}"
        self._views.append(name)
        attempt(lambda: plainly_named(frame).createTempView(name), self._failure())
        return table(name)

    def _schema(self, frame: DataFrame, columns: Sequence[str], name: str) -> Columns:
        """What the columns hold; those that are wanted are there once."""
        fields = attempt(lambda: frame.schema.fields, self._failure())
        names = [field.name for field in fields]
        for wanted in columns:
            # A pivoted frame has columns named after its rows: the others are not listed, and
            # that one is missing may tell of rows.
            if wanted not in names:
                raise UnknownColumn(f"{name} has no column {wanted!r}; check its schema")
            if names.count(wanted) > 1:
                raise SourceError(f"{name} has more than one column {wanted!r}; rename one of them")
        types = {field.name: field.dataType.typeName() for field in fields}
        return Columns(
            {name: KINDS.get(type_name, "other") for name, type_name in types.items()},
            unclear={name for name, type_name in types.items() if type_name not in CANONICAL},
            zoned={name for name, type_name in types.items() if type_name == "timestamp"},
        )

    def _failure(self) -> SourceError:
        return SourceError(
            f"{self._name} could not be counted by Spark; the log of its driver says why"
        )


def plainly_named(frame: DataFrame) -> DataFrame:
    """The frame with plain names of columns, and bytes as text.

    Bytes that are not UTF-8 have no text of their own: they are written as PostgreSQL does. Floats
    are multiplied by 1: by a column itself Spark skips rows of files and caches as their least and
    largest number say, which leave out NaN and tell -0.0 from 0.0.
    """
    from pyspark.sql import functions

    renamed = frame.toDF(*(plain(name) for name in frame.columns))
    for field in renamed.schema.fields:
        if field.dataType.typeName() == "binary":
            digits = functions.lower(functions.hex(field.name))
            shown = functions.concat(functions.lit("\\x"), digits)
            renamed = renamed.withColumn(field.name, shown)
        elif field.dataType.typeName() in FLOATS:
            once = functions.col(field.name) * functions.lit(1).cast("float")
            renamed = renamed.withColumn(field.name, once)
    return renamed


def _active() -> Spark:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra(
            "tables of Spark need PySpark; install it with: pip install '.[spark]' in the checkout"
        ) from None
    session = SparkSession.getActiveSession()
    if session is None:
        raise InvalidParameter(
            "a table of Spark needs a running session, and there is none; start one"
        )
    return session


def _table(name: str | tuple[str, ...], session: Spark) -> DataFrame:
    written = (
        name if isinstance(name, str) else ".".join("`" + p.replace("`", "``") + "`" for p in name)
    )
    shown = name if isinstance(name, str) else ".".join(name)
    return attempt(
        lambda: session.table(written),
        DataIndependentFailure(f"Spark has no table {shown!r} that it can read; check the name"),
    )
