"""The service's own tables, beside the ledger's in one database."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import (
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite

from topsecret.ledger.store import Store

METADATA = MetaData()

USERS = Table(
    "service_users",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("password", Text, nullable=False),
    Column("active", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Column("first", Integer, nullable=True),
)
"""Owners and analysts; passwords as argon2id hashes. ``first`` is 1 while the password is one that
somebody else handed over."""

KEYS = Table(
    "service_keys",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("revoked", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Column("scope", Text, nullable=True),
    Column("expires", Float, nullable=True),
    Column("parent", Text, nullable=True),
)
"""API keys of machines, as SHA-256 hashes; those of version 0.1 have argon2id ones until they are
used. Without a ``scope`` a key may do all that its account may; ``parent`` is the key that made it,
with which it ends."""

SESSIONS = Table(
    "service_sessions",
    METADATA,
    Column("hash", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("expires", Float, nullable=False),
    Column("begun", Float, nullable=True),
    Column("agent", Text, nullable=True),
)
"""Log-ins, by the hash of their token; ``agent`` is what the browser calls itself."""

IDENTITIES = Table(
    "service_identities",
    METADATA,
    Column("issuer", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("user", Text, nullable=False, unique=True),
)
"""Whom a provider of OpenID Connect signs in to which account."""

ROLES = Table(
    "service_roles",
    METADATA,
    Column("dataset", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("role", Text, nullable=False),
)
"""Who owns or views single datasets. Who may ask has a share in the ledger."""

AUDIT = Table(
    "service_audit",
    METADATA,
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
"""Who did what: a chain of entries, each tied to all before it by its hash."""

DATASETS = Table(
    "service_datasets",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("columns", Text, nullable=False),
    Column("cap", Integer, nullable=True),
    Column("delta", Float, nullable=False),
    Column("created", Float, nullable=False),
    Column("table", Text, nullable=True),
    Column("delta_rate", Float, nullable=True),
    Column("filters", Text, nullable=True),
    Column("state", Text, nullable=True),
    Column("version", Text, nullable=True),
    Column("sql", Integer, nullable=True),
    Column("trust_view", Integer, nullable=True),
    Column("version_from", Text, nullable=True),
)
"""What the owner registered; the budget itself is the ledger's. ``source`` is a file's path or,
where there is a ``table``, the name of a database that the service was started with. Datasets
without a ``delta_rate`` give each question the same ``delta``, as the first services did.
``state`` is paused or retired, or empty; ``version`` names a table's contents; ``sql`` is 1
where analysts may ask in SQL, ``trust_view`` where the owner answers for a view; ``version_from``
says where the version is read instead."""

JOBS = Table(
    "service_jobs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("error", Text, nullable=True),
    Column("message", Text, nullable=True),
    Column("answer", Text, nullable=True),
    Column("asked", Float, nullable=False),
    Column("shown", Float, nullable=True),
    Column("worker", Text, nullable=False),
    Column("cancelled", Float, nullable=True),
    Column("cause", Text, nullable=True),
    Column("held", Text, nullable=True),
    Column("entry", Integer, nullable=True),
    UniqueConstraint("user", "dataset", "request", name="one_job_per_request"),
    Index("service_jobs_by_state", "state"),
    Index("service_jobs_by_user", "user", "asked"),
    Index("service_jobs_by_end", "user", "shown"),
    Index("service_jobs_by_entry", "user", "dataset", "entry", "asked"),
    Index("service_jobs_by_age", "asked"),
)
"""Questions and, once they have one, their answers. ``cause`` is for the owners: why the data could
not be read, in public words. ``held`` is what the ledger holds for the question, if it does;
``entry`` is where it has the answer. SQLite goes through an answer to what stands behind it in a
row: what is looked at for every question is in an index."""

SAVED = Table(
    "service_saved",
    METADATA,
    Column("user", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("created", Float, nullable=False),
)
"""Questions that accounts keep under names, to be asked again."""

SCHEDULES = Table(
    "service_schedules",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("every", Text, nullable=False),
    Column("created", Float, nullable=False),
)
"""Questions that are asked at set times, in an account's name."""

RUNS = Table(
    "service_runs",
    METADATA,
    Column("schedule", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("held", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("answer", Text, nullable=True),
    Column("message", Text, nullable=True),
    Index("service_runs_by_state", "state", "at"),
)
"""The times of a schedule, each with what the ledger holds for it; ``answer`` is its job."""

WORKERS = Table(
    "service_workers",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("seen", Float, nullable=False),
)
"""Worker processes and their last sign of life: the jobs of a dead one are taken over."""

NOTES = Table(
    "service_notes",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Single values, such as the hash of the set-up token."""


def put(connection: Connection, table: Table, values: Mapping[str, object]) -> None:
    """Write a row in the place of the one with its key; of two writers at once the last stays."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    keys = [column.name for column in table.primary_key]
    rest = {name: value for name, value in values.items() if name not in keys}
    statement = insert(table).values(values)
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest))


CREATION_LOCK = 0x746F7074  # any constant: two processes must not create the tables at once


def create(store: Store) -> None:
    """Make what is missing; any number of processes may do so at once."""
    with store.writing() as connection:
        if not store.sqlite:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({CREATION_LOCK})"))
        METADATA.create_all(connection)
        _add_columns(connection)
        for table in METADATA.sorted_tables:
            for index in table.indexes:  # those that earlier services did not have
                index.create(connection, checkfirst=True)


def _add_columns(connection: Connection) -> None:
    """The columns that earlier services did not have, all of which may be empty."""
    for table in METADATA.sorted_tables:
        known = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                kind = column.type.compile(connection.dialect)
                added = f'ALTER TABLE {table.name} ADD COLUMN "{column.name}" {kind}'
                connection.execute(text(added))
