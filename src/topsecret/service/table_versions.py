"""A table's version that is read from a public table, so that a nightly report is a new question.

With the same version a question finds its stored answer at no cost; with a new one it is counted
and paid for. What is read must be public: a job that fills the events notes, in a table of its
own, that it has done so.

>>> VersionFrom.from_text(VersionFrom("etl_runs", "finished").to_text())
VersionFrom(table='etl_runs', column='finished', trusted=False)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from topsecret.sources.latest_value import latest_value

if TYPE_CHECKING:
    from topsecret.service.databases import Databases
    from topsecret.service.datasets import Dataset


@dataclass(frozen=True, slots=True)
class VersionFrom:
    """The column whose largest value is the version, in the dataset's own database."""

    table: str
    column: str
    trusted: bool = False
    """The owner answers for a view, or for a table with a column of people, being public."""

    def to_text(self) -> str:
        """As it is stored."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> VersionFrom:
        """As it was stored."""
        return cls(**json.loads(text))


def version_now(dataset: Dataset, known: Iterable[Dataset], databases: Databases) -> str | None:
    """Which contents of its table a question is about today; it may block.

    No table of events is read, of this dataset or of another in the same database, by whichever
    name of it. The text holds the place, too, since two tables may count their runs alike, and
    a line's end, which no version in the owner's words does.
    """
    place = dataset.version_from
    if place is None or dataset.table is None:
        return dataset.version
    beside = [
        one
        for one in known
        if one.table is not None and databases.may_be_one(one.source, dataset.source)
    ]
    latest = latest_value(
        databases.address(dataset.source),
        place.table,
        place.column,
        private={dataset.table}
        | {str(one.table) for one in beside if one.source == dataset.source},
        elsewhere={str(one.table) for one in beside if one.source != dataset.source},
        persons={dataset.person, *(one.person for one in beside)},
        trusted=place.trusted,
    )
    return f"{json.dumps([place.table, place.column])}\n{latest}"


def version_asked(question: Mapping[str, object]) -> str | None:
    """The version in a question as the ledger has it.

    >>> version_asked({"source": {"version": "2026"}}), version_asked({"source": {"version": ""}})
    ('2026', None)
    """
    source = question.get("source")  # a text in topsecret 0.1, which knew no versions of tables
    version = source.get("version") if isinstance(source, Mapping) else None
    return str(version) if version else None
