"""Which rows a series has counted: fixed before any noise is drawn, and never moved.

A period is *sealed* in one transaction: its counts, what they took from each person's limit, and a
random number from which, with the series' key, the noise of the period comes. Before the seal there
is no noise for the period, after it there is one version of its counts. Rows that change, vanish or
come back later move nothing; a row that is late counts in the period in which it is found.

People are kept under a keyed hash, items in clear: as secret as the data.

**Precondition of the guarantee.** What one person adds is a function of that person's own rows, the
periods in which they were found, and the key: docs/proofs/series.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from sqlalchemy import Connection, Table, bindparam, delete, func, select, text

from topsecret.ledger.ledger import Ledger
from topsecret.ledger.publications import Publication
from topsecret.ledger.rows import DatasetRow
from topsecret.ledger.schema import (
    SEALS,
    SERIES_ARRIVALS,
    SERIES_PAIRS,
    SERIES_PERSONS,
    SERIES_SUMS,
)

_SOME = 500
"""How many keys are asked for in one statement."""
_HASH_BYTES = 16
_ALL = 0
"""The period under which sums of all periods are kept."""


@dataclass(frozen=True, slots=True)
class CountRule:
    """What counts of a person's pairs. Public."""

    kind: Literal["cumulative", "window"]
    """Whether sums go back to the start or over the last periods."""
    window: int
    """How many periods a window has."""
    max_counts: int
    """How many counts each person has for life."""
    late: int
    """How many periods before those that are new are read again, for rows that came late."""


class Contributions:
    """The counts of one series, kept in its ledger. Secret."""

    def __init__(self, ledger: Ledger, publication: Publication, rule: CountRule) -> None:
        self._store = ledger._store
        self._publication = publication
        self._rule = rule

    def __repr__(self) -> str:
        return "<Contributions: secret counts>"

    def nonces(self) -> dict[int, bytes]:
        """The periods whose counts are fixed, each with its random number."""
        with self._store.reading() as connection:
            return self._nonces(connection)

    def sums(self, period: int) -> tuple[dict[int, bytes], dict[str, int]]:
        """The random numbers of all periods, and the present sum of every item that has one.

        Both are of one moment. The sums are those after ``period`` if it was sealed last: whoever
        finds a later one among the numbers must not use them.
        """
        table = SERIES_SUMS.c
        within = table.period == _ALL
        if self._rule.kind == "window":
            within = table.period > period - self._rule.window
        query = (
            select(table.item, func.sum(table.persons))
            .where(table.reservation == self._publication.id, within)
            .group_by(table.item)
        )
        with self._store.reading() as connection:
            nonces = self._nonces(connection)
            return nonces, {item: int(total) for item, total in connection.execute(query)}

    def seal(self, period: int, after: int, found: Mapping[int, Iterable[tuple[str, str]]]) -> bool:
        """Fix the counts of a period; False, and nothing done, where another seal came between.

        ``after`` is the last period that was sealed when the rows were read, ``found`` the pairs
        (person, item) by the period of their rows. Periods in between were missed: their rows
        count in this one.
        """
        with self._store.writing() as connection:
            DatasetRow.locked(connection, self._publication.dataset)
            if max(self._nonces(connection), default=0) != after:
                return False
            arrived = self._new(connection, found)
            counted = self._counted(connection, period, arrived)
            self._write(connection, period, counted)
            self._forget(connection, period)
            fresh = [
                {"reservation": self._publication.id, "period": one, "nonce": secrets.token_hex(32)}
                for one in range(after + 1, period + 1)
            ]
            connection.execute(SEALS.insert(), fresh)
        return True

    def _nonces(self, connection: Connection) -> dict[int, bytes]:
        query = select(SEALS.c.period, SEALS.c.nonce).where(
            SEALS.c.reservation == self._publication.id
        )
        return {period: bytes.fromhex(nonce) for period, nonce in connection.execute(query)}

    def _new(
        self, connection: Connection, found: Mapping[int, Iterable[tuple[str, str]]]
    ) -> dict[str, tuple[str, str]]:
        """Hash of the pair to (hash of the person, item), of pairs that were not found before.

        Sums of all periods need no memory of what was found: what counted does not count again,
        and whoever has no counts left never has.
        """
        arrived: dict[str, tuple[str, str]] = {}
        for when, pairs in found.items():
            hashed = {
                self._hash("pair", person, item): (self._hash("person", person), item)
                for person, item in pairs
            }
            if self._rule.kind == "window" and self._rule.late:
                before = self._values(
                    connection, SERIES_ARRIVALS, "pair", "period", list(hashed), period=when
                )
                hashed = {pair: one for pair, one in hashed.items() if pair not in before}
                self._insert(
                    connection, SERIES_ARRIVALS, [{"period": when, "pair": p} for p in hashed]
                )
            arrived |= hashed
        return arrived

    def _counted(
        self, connection: Connection, period: int, arrived: Mapping[str, tuple[str, str]]
    ) -> _Counted:
        """First come, first counted, until a person's counts are used up; ties by the hash."""
        last = self._values(connection, SERIES_PAIRS, "pair", "period", list(arrived))
        persons = sorted({person for person, _ in arrived.values()})
        used = self._values(connection, SERIES_PERSONS, "person", "counts", persons)
        counted = _Counted({}, [], {})
        for pair in sorted(arrived):
            person, item = arrived[pair]
            if pair in last and (
                self._rule.kind == "cumulative" or period - last[pair] < self._rule.window
            ):
                continue
            counts = counted.persons.get(person, used.get(person, 0))
            if counts >= self._rule.max_counts:
                continue
            counted.persons[person] = counts + 1
            counted.pairs.append(pair)
            counted.items[item] = counted.items.get(item, 0) + 1
        return counted

    def _write(self, connection: Connection, period: int, counted: _Counted) -> None:
        kept = _ALL if self._rule.kind == "cumulative" else period
        self._insert(
            connection,
            SERIES_PERSONS,
            [{"person": person, "counts": n} for person, n in counted.persons.items()],
            "(reservation, person) DO UPDATE SET counts = excluded.counts",
        )
        self._insert(
            connection,
            SERIES_PAIRS,
            [{"pair": pair, "period": period} for pair in counted.pairs],
            "(reservation, pair) DO UPDATE SET period = excluded.period",
        )
        self._insert(
            connection,
            SERIES_SUMS,
            [{"period": kept, "item": item, "persons": n} for item, n in counted.items.items()],
            "(reservation, period, item) DO UPDATE "
            "SET persons = series_sums.persons + excluded.persons",
        )

    def _forget(self, connection: Connection, period: int) -> None:
        """What no later period looks at."""
        if self._rule.kind == "cumulative":
            return
        gone = period - self._rule.window
        for table, until in (
            (SERIES_SUMS, gone),
            (SERIES_PAIRS, gone),
            (SERIES_ARRIVALS, period - self._rule.late),
        ):
            mine = table.c.reservation == self._publication.id
            connection.execute(delete(table).where(mine, table.c.period <= until))

    def _insert(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, object]],
        conflict: str = "",
    ) -> None:
        if not rows:
            return
        names = ["reservation", *rows[0]]
        marks = ", ".join(f":{name}" for name in names)
        statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"
        if conflict:
            statement += f" ON CONFLICT {conflict}"
        mine = {"reservation": self._publication.id}
        connection.execute(text(statement), [mine | dict(row) for row in rows])

    def _values(
        self,
        connection: Connection,
        table: Table,
        key: str,
        value: str,
        keys: Sequence[str],
        **where: int,
    ) -> dict[str, int]:
        """The values of those keys that the table has."""
        query = select(table.c[key], table.c[value]).where(
            table.c.reservation == self._publication.id,
            table.c[key].in_(bindparam("keys", expanding=True)),
            *(table.c[name] == number for name, number in where.items()),
        )
        return {
            str(one): int(number)
            for some in _chunks(keys)
            for one, number in connection.execute(query, {"keys": some})
        }

    def _hash(self, purpose: str, *texts: str) -> str:
        parts = [one.encode("utf-8", "surrogatepass") for one in texts]
        message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        function = blake2b(
            message,
            key=self._publication.key,
            digest_size=_HASH_BYTES,
            person=purpose.encode("ascii"),
        )
        return function.hexdigest()


@dataclass(slots=True)
class _Counted:
    """What a period adds: each person's counts from then on, the pairs, and items' counts."""

    persons: dict[str, int]
    pairs: list[str]
    items: dict[str, int]


def _chunks(keys: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _SOME):
        yield list(keys[start : start + _SOME])
