"""Questions that an account keeps under a name, to be asked again.

A question is kept, not its answer: asked again it is answered from the store at no cost while
the dataset is as it was, and is a new question, which is paid for, once it is not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import RowMapping, delete, func, select

from topsecret.errors import InvalidParameter
from topsecret.ledger.store import Store
from topsecret.service.auth.people import User
from topsecret.service.auth.standing import check_standing
from topsecret.service.jobs.job import Asked
from topsecret.service.problems import Problem
from topsecret.service.schema import SAVED, put

MOST = 200
"""How many saved questions one account may keep."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A question under a name."""

    name: str
    dataset: str
    asked: Asked

    def to_dict(self) -> dict[str, object]:
        """As plain values that JSON can hold."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            "words": self.asked.words,
            **self.asked.to_dict(),
        }


class SavedQuestions:
    """The saved questions of all accounts. Every method may block."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def save(self, person: User, name: str, dataset: str, asked: Asked) -> None:
        """Keep a question, in the place of another of the same name."""
        user = person.name
        values = {"user": user, "name": name, "dataset": dataset, "question": asked.to_text()}
        others = (SAVED.c.user == user, SAVED.c.name != name)
        count = select(func.count()).select_from(SAVED).where(*others)
        with self._store.writing() as connection:
            check_standing(connection, person)
            if connection.execute(count).scalar_one() >= MOST:
                raise InvalidParameter(f"{MOST} questions are saved; delete one first")
            put(connection, SAVED, values | {"created": time.time()})

    def all(self, user: str) -> list[Saved]:
        """Those of an account, by name."""
        query = select(SAVED).where(SAVED.c.user == user).order_by("name")
        with self._store.reading() as connection:
            return [_saved(row) for row in connection.execute(query).mappings()]

    def get(self, user: str, name: str) -> Saved:
        """One of an account's."""
        query = select(SAVED).where(SAVED.c.user == user, SAVED.c.name == name)
        with self._store.reading() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise _none()
        return _saved(row)

    def delete(self, person: User, name: str) -> None:
        """Forget it; its answers stay."""
        with self._store.writing() as connection:
            check_standing(connection, person)
            mine = (SAVED.c.user == person.name, SAVED.c.name == name)
            if connection.execute(delete(SAVED).where(*mine)).rowcount != 1:
                raise _none()


def _none() -> Problem:
    return Problem(404, "not_found", "There is no such saved question of yours.")


def _saved(row: RowMapping) -> Saved:
    return Saved(row["name"], row["dataset"], Asked.from_text(row["question"]))
