"""What goes over the wire to and from owners: the schema of requests and answers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from topsecret.service.auth.people import Role
from topsecret.service.auth.roles import DatasetRole
from topsecret.service.column_rules import LONGEST_COLUMN
from topsecret.service.dataset_life import State
from topsecret.service.filters import Kind
from topsecret.service.shapes import DATASET, NAME, Count, Delta, DoneShape, Epsilon, Strict


class RoleShape(Strict):
    """A role in a dataset."""

    role: DatasetRole


class MemberShape(RoleShape):
    """Somebody with a role in a dataset."""

    name: str


class EntryShape(BaseModel):
    """One entry of the audit trail."""

    position: int
    """1 for the first."""
    time: str
    """When it was noted."""
    by: str
    """Who did it."""
    action: str
    """What was done, in a word or two."""
    details: dict[str, Any]
    """To what, and how."""
    hash: str = Field(description="Ties the entry to all before it.")


class RegisterShape(Strict):
    """A dataset to be registered: a file, or a table of one of the sources."""

    name: str = Field(pattern=DATASET)
    """As addresses have it."""
    title: str = Field(min_length=1, max_length=100)
    """As pages show it."""
    file: str = Field(default="", max_length=500, description="In one of the data folders.")
    source: str = Field(default="", max_length=40, description="Or a database's name.")
    table: str = Field(default="", max_length=300, description="A table of that database.")
    person: str = Field(min_length=1, max_length=200)
    """The column that identifies each person."""
    columns: list[str] = Field(min_length=1, max_length=50)
    """The columns that may be ranked."""
    filters: dict[str, Kind] = Field(
        default={}, max_length=20, description="Columns that rows may be chosen by: their kinds."
    )
    cap: Count | None = None
    """How many items of one person are counted; None for no cap."""
    sql: bool = Field(default=False, description="Whether analysts may ask in SQL, too.")
    trust_view: bool = Field(
        default=False, description="You answer for a view: each row is its own person's alone."
    )
    epsilon: Epsilon
    """Of everything that is ever answered."""
    delta: Delta = 1e-6
    """Of everything that is ever answered."""
    queries: Count | None = Field(default=None, description="With a fixed price: how many.")
    picks: Count | None = Field(default=None, description="With a fixed price: items in all.")


class VersionFromShape(Strict):
    """Where a table's version is read: the largest value of a column of a public table."""

    table: str = Field(min_length=1, max_length=300, description="In the same database.")
    column: str = Field(min_length=1, max_length=LONGEST_COLUMN)
    """Of that table."""
    trusted: bool = Field(
        default=False,
        description="You answer for a view, or a table with a column of people, being public.",
    )


class EditShape(Strict):
    """What is to be changed of a dataset; what is left out stays."""

    title: str | None = Field(default=None, min_length=1, max_length=100)
    """As pages show it."""
    columns: list[str] | None = Field(default=None, min_length=1, max_length=50)
    """The columns that may be ranked."""
    filters: dict[str, Kind] | None = Field(default=None, max_length=20)
    """Columns that rows may be chosen by: their kinds."""
    version: str | None = Field(
        default=None, max_length=100, description="Of a table: another makes every question new."
    )
    version_from: VersionFromShape | None = Field(
        default=None, description="Or it is read anew for each question; for owners."
    )
    file: str = Field(default="", max_length=500, description="The next file; for owners.")
    source: str = Field(default="", max_length=40, description="Or a database; for owners.")
    table: str = Field(default="", max_length=300, description="Its table; for owners.")


class StateShape(Strict):
    """Where a dataset is in its life."""

    state: State = Field(description="What is retired stays so, and its budget is closed.")


class SourceShape(BaseModel):
    """A database that the service was started with."""

    name: str


class TablesShape(SourceShape):
    """A database and its tables, those outside the default schema with their schema's name."""

    tables: list[str]


class AllowShape(Strict):
    """An analyst's share of a budget."""

    analyst: str = Field(pattern=NAME)
    """Whose share it is."""
    epsilon: Epsilon | None = None
    """How much epsilon, of a flexible budget."""
    delta: Delta | None = None
    """How much delta; the same part as of epsilon without it."""
    queries: Count | None = None
    """How many questions, of a metered budget."""
    picks: Count | None = None
    """How many items, of a metered budget."""


class NewAnalystShape(Strict):
    """Somebody to be let in."""

    name: str = Field(pattern=NAME)
    """Of the account."""
    role: Role = "analyst"
    """What the account may do."""
    sign_in: Literal["password", "openid"] = Field(
        default="password", description="By a first password, or by the provider of OpenID Connect."
    )


class MadeAnalystShape(BaseModel):
    """Somebody with a first password, shown this once, or without one."""

    name: str
    """Of the account."""
    password: str | None
    """The first one; None for who signs in by the provider."""


class RegisteredShape(DoneShape):
    """It is done, perhaps with a word of warning."""

    warning: str | None = None


class InDoubtShape(BaseModel):
    """A reservation without a known end."""

    reservation: str
    """By which it is written off."""
    dataset: str
    """Whose budget it took from."""
    analyst: str | None
    """Who asked."""
    time: str
    """When it was made."""
