"""Roles in single datasets: who decides about one, and who sees its answers.

Owners of the service have every right; whoever has a share may ask. Beside them a dataset may have
owners of its own, who share, edit, pause and close it, and viewers, who see all its answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import delete, select

from topsecret.errors import InvalidParameter
from topsecret.ledger.store import Store
from topsecret.service.auth.recognised import Recognised
from topsecret.service.schema import DATASETS, ROLES, USERS, put

DatasetRole = Literal["owner", "viewer"]


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody with a role in a dataset."""

    name: str
    role: DatasetRole


class Roles:
    """The roles in the service's store. Every method may block."""

    def __init__(self, store: Store, recognised: Recognised) -> None:
        self._store, self._recognised = store, recognised

    def members(self, dataset: str) -> list[Member]:
        """Everybody with a role in the dataset."""
        query = select(ROLES).where(ROLES.c.dataset == dataset).order_by(ROLES.c.user)
        with self._store.reading() as connection:
            return [Member(row.user, row.role) for row in connection.execute(query)]

    def give(self, dataset: str, user: str, role: DatasetRole) -> None:
        """Give somebody a role, instead of the one they may have had."""
        active = select(USERS.c.name).where(USERS.c.name == user, USERS.c.active == 1)
        there = select(DATASETS.c.name).where(DATASETS.c.name == dataset)
        with self._store.writing() as connection:
            if connection.execute(active.with_for_update()).first() is None:
                raise InvalidParameter(f"there is no account {user!r}; check its name")
            # A role that outlived its dataset would be one in the next of that name.
            if connection.execute(there.with_for_update()).first() is None:
                raise InvalidParameter(f"there is no dataset {dataset!r}; check its name")
            put(connection, ROLES, {"dataset": dataset, "user": user, "role": role})
        self._recognised.forget()

    def take(self, dataset: str, user: str) -> bool:
        """Take a role away; False when there was none."""
        with self._store.writing() as connection:
            one = (ROLES.c.dataset == dataset, ROLES.c.user == user)
            taken = connection.execute(delete(ROLES).where(*one)).rowcount == 1
        self._recognised.forget()
        return taken
