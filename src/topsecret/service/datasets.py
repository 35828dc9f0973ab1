"""The datasets that the owner registered: what may be asked of which events, at what budget.

An analyst names a dataset and one of its columns. Files and tables are named here, by the owner
alone: a file in one of the folders, or a table of one of the databases, that the service was
started with.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import RowMapping, select

from topsecret.errors import InvalidParameter, SourceError, Taken
from topsecret.ledger import Account, Allowance, Flexible, Ledger, Metered
from topsecret.ledger.question_delta import delta_rate, question_delta
from topsecret.ledger.store import Store
from topsecret.service.column_rules import check_columns, check_title
from topsecret.service.data_files import DataFiles, Extents, shown
from topsecret.service.databases import Databases
from topsecret.service.event_places import before
from topsecret.service.problems import Problem
from topsecret.service.schema import DATASETS
from topsecret.service.shares import part_of
from topsecret.service.table_versions import VersionFrom, version_now
from topsecret.sources.schema import columns_of

if TYPE_CHECKING:
    from topsecret.service.jobs.job import Asked

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
QUESTIONS = 100
"""At a fixed price, what stands for each question's part of the total delta."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """One registered dataset."""

    name: str
    title: str
    source: str = field(repr=False)
    """The file, or the name of a database; for the owner alone, analysts never see it."""
    person: str
    columns: tuple[str, ...]
    """The columns that may be asked."""
    cap: int | None
    delta: float
    """The delta of one question, where it does not depend on its epsilon."""
    table: str | None = field(default=None, repr=False)
    """Where the source is a database."""
    delta_rate: float | None = None
    """The delta of a question of epsilon 1."""

    filters: Mapping[str, str] = field(default_factory=dict)
    """The columns that rows may be chosen by, with their kinds."""
    state: str | None = None
    """Paused or retired; None where it may be asked."""
    version: str | None = None
    """Which contents of a table the questions are about, in the owner's words."""
    sql: bool = False
    """Whether analysts may ask in SQL."""
    trust_view: bool = False
    """The owner answers for a view, which is not analysed; the receipts say so."""
    version_from: VersionFrom | None = None
    """Where the version is read instead, anew for each question."""

    def delta_of(self, asked: Asked) -> float:
        """The delta of a question."""
        if self.delta_rate is None or asked.epsilon is None:
            return self.delta
        kind = (asked.lists, asked.thresholded, asked.counts)
        return question_delta(self.delta_rate, asked.epsilon, *kind)

    @property
    def events(self) -> tuple[str, str]:
        """Its name, and what tells its events from others as it is now."""
        return self.name, place_of(self.source, self.table)

    @property
    def place(self) -> str:
        """Where the events are, in the owner's words."""
        if self.table is not None:
            return f"{self.table} of {self.source}"
        return shown(self.source)


@dataclass(frozen=True, slots=True)
class NewDataset:
    """What the owner fills in: a file, or a database and one of its tables."""

    name: str
    title: str
    file: str
    person: str
    columns: tuple[str, ...]
    cap: int | None
    epsilon: float
    delta: float
    queries: int | None = None
    picks: int | None = None
    source: str = ""
    table: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)
    sql: bool = False
    """Whether analysts may ask in SQL about the columns above."""
    trust_view: bool = False

    @property
    def events(self) -> tuple[str, str]:
        """What is looked at for it; it has no name yet."""
        return "", place_of(self.file or self.source, self.table)


def place_of(source: str, table: str | None = None) -> str:
    """One text for a file, or for a table of a database."""
    return f"{source}\n{table or ''}"


class Datasets:
    """The registered datasets, with their budgets in the ledger. Every method may block."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        folders: tuple[Path, ...],
        databases: Databases,
    ) -> None:
        self._store, self._ledger = store, ledger
        self.databases = databases
        self._files = DataFiles(folders)
        self._accounts: dict[str, tuple[int, Account]] = {}

    # The owner

    def files(self) -> list[str]:
        """The files that may be registered, by paths relative to their folders."""
        return self._files.listed()

    def columns_of(self, file: str) -> tuple[str, ...]:
        """The column names of a file that could be registered."""
        return columns_of(self._files.locate(file))

    def register(self, new: NewDataset) -> None:
        """Open the budget and list the dataset."""
        self.enter(new, self.examined(new))

    def examined(self, new: NewDataset) -> str:
        """Where its events are, once they were looked at."""
        if not _NAME.fullmatch(new.name):
            raise InvalidParameter(
                "a dataset's name has 1 to 40 small letters, digits, dashes or underscores"
            )
        check_title(new.title)
        if new.trust_view and (new.sql or not new.table):
            raise InvalidParameter("only a view of a database is trusted, and not asked in SQL")
        source, existing = self.schema_of(new)
        check_columns(new.person, new.columns, new.filters, existing)
        if new.sql:
            asked = (source, new.person, new.columns, new.cap, new.delta, new.table or None)
            self.check_sql(Dataset(new.name, new.title, *asked, filters=new.filters))
        return source

    def enter(self, new: NewDataset, source: str) -> None:
        """Open the budget and list a dataset whose events were looked at."""
        budget: Metered | Flexible
        if new.queries is None and new.picks is None:
            budget = Flexible.of(epsilon=new.epsilon, delta=new.delta)
        elif new.queries is None or new.picks is None:
            raise InvalidParameter("a fixed price needs both a number of questions and of items")
        else:
            budget = Metered.of(
                epsilon=new.epsilon, delta=new.delta, queries=new.queries, picks=new.picks
            )
        values = {
            "name": new.name,
            "title": new.title,
            "source": source,
            "table": new.table or None,
            "person": new.person,
            "columns": json.dumps(new.columns),
            "cap": new.cap,
            "delta": float(f"{new.delta / QUESTIONS:.3g}"),
            "created": time.time(),
            "filters": json.dumps(dict(new.filters)),
            "sql": int(new.sql),
            "trust_view": int(new.trust_view),
            "delta_rate": delta_rate(budget) if isinstance(budget, Flexible) else None,
        }
        self._open(new.name, budget, new.person)
        try:
            with self._store.writing() as connection:
                connection.execute(DATASETS.insert().values(values))
        except Taken:
            raise InvalidParameter(f"{new.name!r} names a dataset already; take another") from None

    def existing(self, dataset: Dataset) -> tuple[str, ...]:
        """The columns that its events have today."""
        if dataset.table is not None:
            return self.databases.columns(dataset.source, dataset.table)
        try:
            self._files.check(dataset.source)
            return columns_of(dataset.source)
        except SourceError as error:
            raise InvalidParameter(str(error)) from None

    def schema_of(self, new: NewDataset) -> tuple[str, tuple[str, ...]]:
        """Where the events are, and their columns."""
        if bool(new.file) == bool(new.source) or bool(new.source) != bool(new.table):
            raise InvalidParameter("name a file, or a source and one of its tables")
        if new.source:
            return new.source, self.databases.columns(new.source, new.table)
        path = self._files.locate(new.file)
        try:
            return path, columns_of(path)
        except SourceError as error:
            raise InvalidParameter(str(error)) from None

    def check_sql(self, dataset: Dataset) -> None:
        """Events that no query in SQL can be about are not registered for it."""
        from topsecret.service.pasted_sql import check_that_it_can_be_asked  # it imports this

        check_that_it_can_be_asked(self, dataset)

    def _open(self, name: str, budget: Metered | Flexible, person: str) -> None:
        """Open the budget, or find the one that a registration left when it was cut short.

        The two records are written one after the other. A budget with these very terms from which
        nothing was ever asked is as good as a new one.
        """
        try:
            self._ledger.open_budget(name, budget, person=person)
            return
        except InvalidParameter:
            if self._registered(name):
                raise
        found = self._ledger.account(name)
        untouched = all(entry.event == "opened" for entry in self._ledger.history(name))
        if (found.budget, found.person, untouched) != (budget, person, True):
            raise InvalidParameter(
                f"dataset {name!r} has a budget already, with other terms or used; choose "
                "another name only for other data"
            )

    def _registered(self, name: str) -> bool:
        with self._store.reading() as connection:
            query = select(DATASETS.c.name).where(DATASETS.c.name == name)
            return connection.execute(query).first() is not None

    def allow(self, dataset: str, analyst: str, terms: Mapping[str, float | None]) -> None:
        """Give an analyst a share of a dataset's budget."""
        known = self.get(dataset)
        budget = self._ledger.account(dataset).budget
        if isinstance(budget, Metered):
            queries, picks = terms.get("queries"), terms.get("picks")
            if queries is None or picks is None:
                raise InvalidParameter("a share of this budget states questions and items")
            limits = {"picks": Fraction(int(picks)), "queries": Fraction(int(queries))}
        else:
            epsilon, delta = terms.get("epsilon"), terms.get("delta")
            if epsilon is None:
                raise InvalidParameter("a share of this budget states an epsilon")
            whole = budget.delta if delta is None else delta
            limits = dict(Flexible.of(epsilon=epsilon, delta=whole).limits)
            if delta is None:
                limits = dict(part_of(budget, limits))
            if known.delta_rate is None:  # of old: one question at least, whatever its epsilon
                part = min(Fraction(1), Fraction(epsilon) / budget.epsilon)
                one = max(part * budget.failures, Fraction(known.delta))
                limits["delta"], limits["slack"] = one, budget.slack
        self._ledger.allow(dataset, analyst, limits)

    # Everybody

    def all(self) -> list[Dataset]:
        """All that are registered."""
        with self._store.reading() as connection:
            rows = connection.execute(select(DATASETS).order_by("name")).mappings()
            return [_dataset(row) for row in rows]

    def get(self, name: str) -> Dataset:
        """One of them."""
        with self._store.reading() as connection:
            query = select(DATASETS).where(DATASETS.c.name == name)
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise _unknown(name)
        return _dataset(row)

    def open_to(self, analyst: str, sees: Callable[[str], bool] = lambda _: False) -> list[Dataset]:
        """Those that the analyst has an allowance from, or sees all the same."""
        return [
            one
            for one in self.all()
            if sees(one.name)
            or (one.state != "retired" and self.allowance(one.name, analyst) is not None)
        ]

    def asked_by(self, name: str, analyst: str) -> Dataset:
        """A dataset that the analyst may ask; to others it does not exist."""
        dataset = self.get(name)
        if self.allowance(name, analyst) is None:
            raise _unknown(name)
        return dataset

    def account(self, name: str) -> Account:
        """The budget as it is; it is read anew only when the ledger has moved.

        The ledger itself moves when a question is asked and, at a tick, when it ends.
        """
        position = self._ledger.position(name)
        found = self._accounts.get(name)
        if found is None or found[0] != position:
            found = self._accounts[name] = position, self._ledger.account(name)
        return found[1]

    def allowance(self, name: str, analyst: str) -> Allowance | None:
        """The analyst's share, if there is one."""
        for share in self.account(name).allowances:
            if share.analyst == analyst:
                return share
        return None

    def also(self, dataset: Dataset) -> list[str]:
        """Other datasets that are or were about the same events, perhaps: their budgets add up.

        What they were about is compared by its name alone: a folder that was left because it hangs
        is not looked at again.
        """
        with self._store.reading() as connection:
            past = before(connection)
        mine, looked_at = (dataset.source, dataset.table), Extents()
        left = past.get(dataset.name, ())
        others = {one.name: (one.source, one.table) for one in self.all()}
        others.pop(dataset.name, None)
        return [
            name
            for name, theirs in others.items()
            if mine in past.get(name, ())
            or theirs in left
            or self.databases.may_be_same(mine, theirs, looked_at)
        ]

    def at_its_version(self, dataset: Dataset) -> Dataset:
        """The dataset with the version that its table has now."""
        return replace(dataset, version=version_now(dataset, self.all(), self.databases))

    def lane(self, name: str) -> str:
        """Whose engines its questions wait for: a database's, by its name, or those of files."""
        query = select(DATASETS.c.source, DATASETS.c.table).where(DATASETS.c.name == name)
        with self._store.reading() as connection:
            found = connection.execute(query).one_or_none()
        if found is None or found.table is None or found.source not in self.databases.names:
            return ""
        return str(found.source)

    def watched(self, dataset: Dataset) -> Callable[[], None]:
        """What raises a ``SourceError`` once its file is not as it is now."""
        return (lambda: None) if dataset.table is not None else self._files.watched(dataset.source)

    def events(self, dataset: Dataset) -> tuple[str, str | None]:
        """What the engine is given: a file's path, or a database's address and the table."""
        if dataset.table is None:
            self._files.check(dataset.source)
            return dataset.source, None
        return self.databases.address(dataset.source), dataset.table


def _unknown(name: str) -> Problem:
    """There is no such dataset, or none for this analyst: they must look alike."""
    return Problem(404, "not_found", f"there is no dataset {name[:60]!r} for you")


def _dataset(row: RowMapping) -> Dataset:
    return Dataset(
        row["name"],
        row["title"],
        row["source"],
        row["person"],
        tuple(json.loads(row["columns"])),
        row["cap"],
        row["delta"],
        row["table"],
        row["delta_rate"],
        json.loads(row["filters"] or "{}"),
        row["state"],
        row["version"],
        bool(row["sql"]),
        bool(row["trust_view"]),
        None if row["version_from"] is None else VersionFrom.from_text(row["version_from"]),
    )
