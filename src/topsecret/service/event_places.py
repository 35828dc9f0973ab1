"""Where the events of datasets were before they were pointed elsewhere.

The budget of a dataset protects everybody in all that it was ever pointed to. Events that it has
left have been asked about: registered anew, under another name, they have two budgets, and those
add up.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, select

from topsecret.service.databases import Events
from topsecret.service.schema import NOTES, put

_NOTE = "places of "


def remember(connection: Connection, dataset: str, place: Events) -> None:
    """Note what a dataset is about until now; its row is locked."""
    known = before(connection).get(dataset, ())
    if place not in known:
        places = json.dumps([*known, place])
        put(connection, NOTES, {"name": f"{_NOTE}{dataset}", "value": places})


def before(connection: Connection) -> dict[str, tuple[Events, ...]]:
    """What each dataset was about, apart from what it is about now."""
    query = select(NOTES).where(NOTES.c.name.startswith(_NOTE, autoescape=True))
    return {
        row.name.removeprefix(_NOTE): tuple(
            (source, table) for source, table in json.loads(row.value)
        )
        for row in connection.execute(query)
    }
