"""Files with one comparison per row, counted by DuckDB: who won against whom, and how often.

The columns are read as text, row by row, as in ``duckdb.py``. Rows without a winner or a loser are
left out. Who met whom is public here (see ``ranking/comparisons.py``); who won is secret.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from topsecret.errors import InvalidParameter, SourceError
from topsecret.sources.engines.closed_duckdb import closed_engine
from topsecret.sources.engines.files import EventFile, check_columns
from topsecret.sources.progress import watch
from topsecret.sources.sql.statements import column

TIE_WORDS = ("1", "true", "t", "yes", "y", "tie", "tied", "draw")
"""What the tie column says, in small or capital letters, when a comparison had no winner."""


@dataclass(frozen=True, slots=True, repr=False)
class Matches:
    """Comparisons by place in ``items``: winners, losers, ties and how often each. Secret."""

    items: list[str]
    winners: NDArray[np.int64]
    losers: NDArray[np.int64]
    ties: NDArray[np.bool_]
    counts: NDArray[np.int64]


class MatchFile:
    """One file of comparisons: CSV, TSV, JSON lines or Parquet."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = EventFile.at(path)

    @property
    def name(self) -> str:
        """The file's name, without its directory."""
        return self._file.path.name

    def read(self, winner: str, loser: str, tie: str | None = None) -> Matches:
        """Count the comparisons of each pair by outcome."""
        wanted = (winner, loser) if tie is None else (winner, loser, tie)
        if len({name.casefold() for name in wanted}) != len(wanted):
            raise InvalidParameter(
                f"winner={winner!r}, loser={loser!r} and tie={tie!r} must be different columns"
            )
        with closed_engine(self._file.path) as engine:
            columns: tuple[str, ...] | None
            if self._file.format == "Parquet":
                describe = exp.Describe(this=exp.select("*").from_(self._file.scan(wanted, ())))
                columns = tuple(self._run(engine, describe.sql("duckdb"))["column_name"])
            else:
                columns = self._file.text_columns()
            if columns is None:
                return _numbered({"winner": [], "loser": [], "tied": [], "times": []})
            check_columns(self._file, wanted, columns)
            scan = self._file.scan(wanted, columns)
            return _numbered(self._run(engine, _tally(scan, winner, loser, tie).sql("duckdb")))

    def _run(self, engine: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
        def ask() -> dict[str, Any]:
            return engine.execute(sql).fetchnumpy()

        try:
            return watch(
                ask, fraction=lambda: engine.query_progress() / 100, interrupt=engine.interrupt
            )
        except duckdb.Error as error:
            unreadable = isinstance(error, duckdb.IOException | duckdb.PermissionException)
        # Raised outside the handler, so that DuckDB's text is not even the error's context.
        if unreadable:
            raise SourceError(f"{self.name} could not be read to its end; check that it is whole")
        raise self._file.malformed()


def _tally(scan: exp.Table, winner: str, loser: str, tie: str | None) -> exp.Select:
    def text(name: str) -> exp.Expression:
        return exp.cast(column(name, "events"), exp.DataType.Type.VARCHAR)

    tied: exp.Expression = exp.false()
    if tie is not None:
        said = exp.Lower(this=exp.Trim(this=text(tie)))
        words = [exp.Literal.string(word) for word in TIE_WORDS]
        found = exp.In(this=said, expressions=words)
        tied = exp.Coalesce(this=found, expressions=[exp.false()])
    names = (text(winner), text(loser), tied)
    aliases = ("winner", "loser", "tied")
    present = [exp.not_(exp.Is(this=text(name), expression=exp.null())) for name in (winner, loser)]
    return (
        exp.select(
            *(exp.alias_(name, alias) for name, alias in zip(names, aliases, strict=True)),
            exp.alias_(exp.Count(this=exp.Star()), "times"),
        )
        .from_(exp.alias_(scan, "events", table=True, quoted=True))
        .where(*present)
        .group_by(*(name.copy() for name in names[: 2 if tie is None else 3]))
    )


def _numbered(rows: dict[str, Any]) -> Matches:
    winners, losers = (list(rows[name]) for name in ("winner", "loser"))
    items = sorted(set(winners) | set(losers))
    places = {item: place for place, item in enumerate(items)}
    return Matches(
        items,
        np.array([places[name] for name in winners], dtype=np.int64),
        np.array([places[name] for name in losers], dtype=np.int64),
        np.asarray(rows["tied"], dtype=np.bool_),
        np.asarray(rows["times"], dtype=np.int64),
    )
