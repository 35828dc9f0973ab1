"""A connection to one source, and cursors that ask it. Their errors have PEP 249's names beside.

``InvalidParameter`` is the interface's ``NotSupportedError`` and its ``InterfaceError``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from topsecret.errors import InvalidParameter
from topsecret.questions.sql import explain, sql
from topsecret.results.frames import NUMBERS, Row, table_of
from topsecret.results.release import Release

if TYPE_CHECKING:
    from topsecret.questions.answer import Answer

STRING, NUMBER = "STRING", "NUMBER"
"""What a column of a result holds."""


class Connection:
    """One source and the terms of every question about it."""

    def __init__(self, source: Any, options: dict[str, Any]) -> None:
        self._source = source
        self._options = options
        self._closed = False

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._check()
        return Cursor(self)

    def commit(self) -> None:
        """Nothing: answers are paid for when they are asked for."""
        self._check()

    def rollback(self) -> None:
        """Refused: what an answer told cannot be taken back."""
        raise InvalidParameter("an answer cannot be taken back, nor what it cost")

    def close(self) -> None:
        """No further query."""
        self._closed = True

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        if self._closed:
            raise InvalidParameter("the connection is closed; open another")

    def _ask(self, query: str) -> Answer:
        self._check()
        return sql(query, self._source, **self._options)

    def _explain(self, query: str) -> list[Row]:
        self._check()
        names = ("privacy", "person", "dialect", "max_per_item", "unit")
        known = {name: self._options[name] for name in names if name in self._options}
        return [(name, str(value)) for name, value in explain(query, self._source, **known).items()]


class Cursor:
    """Asks one query at a time and hands its rows out: rank, items, n, plus_minus."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: list[tuple[Any, ...]] | None = None
        self.receipt: dict[str, str] = {}
        """The receipt of the last answer; of groups, what they cost together."""
        self.answer: Answer | None = None
        """The last answer itself."""
        self._rows: list[Row] | None = None
        self._next = 0

    @property
    def rowcount(self) -> int:
        """How many rows the last query gave; -1 before the first."""
        return -1 if self._rows is None else len(self._rows)

    def execute(self, query: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Ask. EXPLAIN before the query shows what would be asked, and costs nothing."""
        if parameters:
            raise InvalidParameter("write values into the query: it has no parameters")
        self._rows, self.description, self.receipt, self.answer = None, None, {}, None
        word, _, rest = query.strip().partition(" ")
        if word.upper() == "EXPLAIN":
            return self._shown(("part", "value"), self.connection._explain(rest))
        answer = self.answer = self.connection._ask(query)
        self.receipt = (
            dict(answer.receipt) if isinstance(answer, Release) else {"Together": answer.together}
        )
        return self._shown(*table_of(answer))

    def _shown(self, names: Sequence[str], rows: list[Row]) -> Cursor:
        self._rows, self._next = rows, 0
        self.description = [
            (name, NUMBER if _is_number(name, place, rows) else STRING, *[None] * 5)
            for place, name in enumerate(names)
        ]
        return self

    def executemany(self, query: str, parameters: Sequence[Sequence[Any]]) -> None:
        """Refused: a query has no parameters."""
        raise InvalidParameter("write values into the query: it has no parameters")

    def fetchone(self) -> Row | None:
        """The next row."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, ``arraysize`` of them unless said otherwise."""
        if self._rows is None:
            raise InvalidParameter("no query was asked yet; execute one")
        start = self._next
        self._next = min(len(self._rows), start + (self.arraysize if size is None else size))
        return self._rows[start : self._next]

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return self.fetchmany(self.rowcount)

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """Forget the rows."""
        self._rows = None

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing: there are no parameters."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing: rows are small."""


def _is_number(name: str, place: int, rows: list[Row]) -> bool:
    return name in NUMBERS or (bool(rows) and isinstance(rows[0][place], int | float))
