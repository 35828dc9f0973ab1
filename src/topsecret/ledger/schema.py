"""The ledger's tables, their versions and the migrations between them.

A ledger is brought up to date when it is opened, in one transaction. A migration is never
changed once it was released: a new form is a new migration.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    select,
    text,
)

from topsecret.errors import LedgerError
from topsecret.ledger.payment import FirstForm

METADATA = MetaData()

VERSIONS = Table("topsecret_ledger", METADATA, Column("version", Integer, nullable=False))

DATASETS = Table(
    "datasets",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("terms", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("adjacency", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("spent", Text, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("head", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""One row per dataset, locked by whoever changes anything of it; sums and the chain's end."""

ENTRIES = Table(
    "entries",
    METADATA,
    Column("dataset", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("time", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""What happened, append-only; the other tables can be computed from it."""

ALLOWANCES = Table(
    "allowances",
    METADATA,
    Column("dataset", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("limits", Text, nullable=False),
    Column("spent", Text, nullable=False),
    sqlite_with_rowid=False,
)

RESERVATIONS = Table(
    "reservations",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("request", Text, nullable=True),
    Column("question", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("cost", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("time", Text, nullable=False),
    UniqueConstraint("dataset", "analyst", "request", name="one_reservation_per_request"),
    Index("reservations_by_question", "dataset", "question"),
    Index("reservations_by_state", "dataset", "state"),
    sqlite_with_rowid=False,
)

ANSWERS = Table(
    "answers",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("answer", Text, nullable=False),
    sqlite_with_rowid=False,
)


FIRST_FORMS = Table(
    "first_form_questions",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("mechanism", Text, nullable=False),
    Index("first_form_questions_by_key", "dataset", "key"),
    sqlite_with_rowid=False,
)
"""Questions that were asked before they had fingerprints, by what ``FirstForm`` keeps of them."""

PUBLICATIONS = Table(
    "publications",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("key", Text, nullable=False),
    UniqueConstraint("dataset", "name", name="one_publication_per_name"),
    sqlite_with_rowid=False,
)
"""Lists that are published again and again, paid for at once. ``key`` is secret, or empty."""

PERIODS = Table(
    "periods",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("period", Integer, primary_key=True),
    Column("state", Text, nullable=False),
    Column("time", Text, nullable=False),
    Column("answer", Text, nullable=True),
    sqlite_with_rowid=False,
)
"""How far each period of a publication got, and the answer that may be shown."""

SEALS = Table(
    "series_seals",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("period", Integer, primary_key=True),
    Column("nonce", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""Periods of a series whose counts are fixed, each with a random number of its own. Secret."""

SERIES_PERSONS = Table(
    "series_persons",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("person", Text, primary_key=True),
    Column("counts", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""How many counts each person, under a keyed hash, has had for life. Secret."""

SERIES_PAIRS = Table(
    "series_pairs",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("pair", Text, primary_key=True),
    Column("period", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""In which period each pair of person and item, under a keyed hash, counted last. Secret."""

SERIES_ARRIVALS = Table(
    "series_arrivals",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("period", Integer, primary_key=True),
    Column("pair", Text, primary_key=True),
    sqlite_with_rowid=False,
)
"""Pairs of recent periods that were found already, where periods are read again. Secret."""

SERIES_SUMS = Table(
    "series_sums",
    METADATA,
    Column("reservation", Text, primary_key=True),
    Column("period", Integer, primary_key=True),
    Column("item", Text, primary_key=True),
    Column("persons", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""What each period added to an item; period 0 has the sum of all of them. Secret."""


def _first_tables(connection: Connection) -> None:
    METADATA.create_all(connection)
    connection.execute(VERSIONS.insert().values(version=1))


def _append_only(connection: Connection) -> None:
    """Entries can be added, not changed: a mistake is stopped, the hash chain finds the rest."""
    if connection.dialect.name == "sqlite":
        statements = [
            f"CREATE TRIGGER entries_no_{verb} BEFORE {verb} ON entries "
            "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END"
            for verb in ("update", "delete")
        ]
    else:
        statements = [
            "CREATE FUNCTION entries_are_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'entries are append-only'; END $$",
            "CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE ON entries "
            "FOR EACH ROW EXECUTE FUNCTION entries_are_append_only()",
        ]
    for statement in statements:
        connection.execute(text(statement))


def _first_forms(connection: Connection) -> None:
    """Read once, from the entries, what was asked before questions had fingerprints."""
    FIRST_FORMS.create(connection, checkfirst=True)
    query = select(ENTRIES.c.dataset, ENTRIES.c.body).where(ENTRIES.c.event == "reserved")
    for dataset, body in connection.execute(query).all():
        entry = json.loads(body)
        first = FirstForm.of(entry["asked"], str(entry["asked"].get("mechanism")).split("(")[0])
        values = {"dataset": dataset, "key": first.key, "mechanism": first.mechanism}
        connection.execute(FIRST_FORMS.insert().values(reservation=entry["reservation"], **values))


def _publications(connection: Connection) -> None:
    for table in (PUBLICATIONS, PERIODS):
        table.create(connection, checkfirst=True)


def _series(connection: Connection) -> None:
    for table in (SEALS, SERIES_PERSONS, SERIES_PAIRS, SERIES_ARRIVALS, SERIES_SUMS):
        table.create(connection, checkfirst=True)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _first_tables,
    _append_only,
    _first_forms,
    _publications,
    _series,
)
"""The migration at index n leads from version n to version n + 1."""

CURRENT = len(MIGRATIONS)


def version_of(connection: Connection) -> int:
    """The version of the ledger behind the connection; 0 when there is none yet."""
    if not inspect(connection).has_table(VERSIONS.name):
        return 0
    return int(connection.execute(select(VERSIONS.c.version)).scalar_one())


def migrate(connection: Connection, to: int = CURRENT) -> None:
    """Bring the tables up to date, inside the caller's transaction."""
    version = version_of(connection)
    if version > CURRENT:
        raise LedgerError(
            f"the ledger has version {version} and this topsecret knows versions up to {CURRENT}; "
            "install a newer topsecret"
        )
    for step in range(version, to):
        MIGRATIONS[step](connection)
        connection.execute(VERSIONS.update().values(version=step + 1))
