"""The life of a dataset after its registration: edited, pointed to the next file, paused, retired.

The budget stays the one that was opened, whatever the dataset is pointed to: people who are in
several files are protected by it in all of them together. What a person is cannot change, for the
same reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sqlalchemy import delete, func, select, update

from topsecret.errors import InvalidParameter, SourceError
from topsecret.ledger import Ledger
from topsecret.ledger.store import Store
from topsecret.service.auth.recognised import Recognised
from topsecret.service.column_rules import check_columns, check_title
from topsecret.service.datasets import Dataset, Datasets, NewDataset, place_of
from topsecret.service.event_places import remember
from topsecret.service.schema import DATASETS, JOBS, ROLES
from topsecret.service.table_versions import VersionFrom

State = Literal["open", "paused", "retired"]
LONGEST_VERSION = 100
_UNASKED = frozenset(("opened", "allowed", "closed"))


@dataclass(frozen=True, slots=True)
class Changes:
    """What the owner changes; None leaves it as it is."""

    title: str | None = None
    columns: tuple[str, ...] | None = None
    filters: Mapping[str, str] | None = None
    version: str | None = None
    """Of a table, in the owner's words: with another version every question is a new one."""
    file: str = ""
    source: str = ""
    table: str = ""
    version_from: VersionFrom | None = None
    """Where the version of a table is read instead; a version in words ends that."""

    @property
    def points(self) -> bool:
        """Whether it names events or tables, among all that the service can read."""
        return bool(self.moves or self.version_from)

    @property
    def moves(self) -> bool:
        """Whether it is pointed to other events."""
        return bool(self.file or self.source or self.table)

    @property
    def looks(self) -> bool:
        """Whether events must be looked at for it."""
        return self.points or self.columns is not None or self.filters is not None

    def events(self, known: Dataset) -> tuple[str, str]:
        """Which events those are."""
        if self.moves:
            return known.name, place_of(self.file or self.source, self.table)
        return known.events


class Life:
    """Changes to registered datasets. Every method may block."""

    def __init__(
        self, store: Store, ledger: Ledger, datasets: Datasets, recognised: Recognised
    ) -> None:
        self._recognised = recognised
        self._store, self._ledger, self._datasets = store, ledger, datasets

    def edit(self, name: str, changes: Changes) -> None:
        """Change what may be asked, the words for it, or which events it is about."""
        self.write(name, self.examined(name, changes))

    def examined(self, name: str, changes: Changes) -> dict[str, object]:
        """What is to be written, once the events were looked at where that is needed."""
        known = self._datasets.get(name)
        values: dict[str, object] = {}
        if changes.title is not None:
            values["title"] = check_title(changes.title)
        columns = known.columns if changes.columns is None else changes.columns
        filters = known.filters if changes.filters is None else changes.filters
        table, existing = known.table, None
        if changes.moves:
            new = NewDataset(
                name,
                known.title,
                changes.file,
                known.person,
                columns,
                known.cap,
                1.0,
                1e-6,
                source=changes.source,
                table=changes.table,
            )
            source, existing = self._datasets.schema_of(new)
            table = changes.table or None
            if known.sql:
                moved = replace(known, source=source, table=table)
                self._datasets.check_sql(replace(moved, columns=columns, filters=filters))
            # Version and trust were of the table that it was; the next file speaks for itself.
            values |= {"source": source, "table": table, "trust_view": 0}
            values |= {"version": None, "version_from": None}
        elif changes.columns is not None or changes.filters is not None:
            existing = self._datasets.existing(known)
        if existing is not None:
            check_columns(known.person, columns, filters, existing)
        # Nothing else: another owner may withdraw a column while the events are looked at.
        if changes.columns is not None:
            values["columns"] = json.dumps(columns)
        if changes.filters is not None:
            values["filters"] = json.dumps(dict(filters))
        if changes.version is not None:
            values |= {"version": _version(changes.version, table), "version_from": None}
        if changes.version_from is not None:
            if changes.moves or changes.version or table is None:
                raise InvalidParameter(
                    "a version is read for a table, without another one in words; point to "
                    "another table first"
                )
            self._tried(replace(known, version_from=changes.version_from))
            values |= {"version": None, "version_from": changes.version_from.to_text()}
        return values

    def write(self, name: str, values: Mapping[str, object]) -> None:
        """Write what was looked at."""
        if not values:
            return
        known = self._datasets.get(name)
        there = known.source, known.table
        with self._store.writing() as connection:
            one = update(DATASETS).where(DATASETS.c.name == name)
            connection.execute(one.values(dict(values)))
            if "source" in values and (values["source"], values["table"]) != there:
                remember(connection, name, there)

    def _tried(self, dataset: Dataset) -> None:
        """A version that cannot be read is refused at once."""
        try:
            self._datasets.at_its_version(dataset)
        except SourceError as error:
            raise InvalidParameter(str(error)) from None

    def move(self, name: str, state: State) -> None:
        """Pause a dataset, let it go on, or retire it for good with its budget."""
        self._datasets.get(name)
        if state == "retired" and self._ledger.account(name).state == "open":
            self._ledger.close_budget(name)
        living = func.coalesce(DATASETS.c.state, "") != "retired"
        one = update(DATASETS).where(DATASETS.c.name == name, living)
        with self._store.writing() as connection:
            moved = connection.execute(one.values(state=None if state == "open" else state))
        if moved.rowcount != 1:
            raise InvalidParameter("a retired dataset stays so; its answers can be looked at")

    def delete(self, name: str) -> None:
        """Take back a registration of which nothing was ever asked; its budget stays as it is."""
        self._datasets.get(name)
        if not all(entry.event in _UNASKED for entry in self._ledger.history(name)):
            raise InvalidParameter("something was asked of this dataset; retire it instead")
        with self._store.writing() as connection:
            asked = select(JOBS.c.id).where(JOBS.c.dataset == name)
            if connection.execute(asked.limit(1)).first() is not None:
                raise InvalidParameter("something was asked of this dataset; retire it instead")
            # In this order: whoever gives a role meanwhile has locked the dataset's row.
            connection.execute(delete(DATASETS).where(DATASETS.c.name == name))
            connection.execute(delete(ROLES).where(ROLES.c.dataset == name))
        self._recognised.forget()


def _version(text: str, table: str | None) -> str | None:
    text = text.strip()
    if text and table is None:
        raise InvalidParameter("files have versions of their own: their paths and times of writing")
    if len(text) > LONGEST_VERSION or not text.isprintable():
        raise InvalidParameter(f"a version has at most {LONGEST_VERSION} printable characters")
    return text or None
