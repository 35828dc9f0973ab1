"""A question and what became of it, as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from topsecret.results.group_releases import Releases
from topsecret.results.record import from_record
from topsecret.results.release import Release
from topsecret.service.filters import Filter, in_words
from topsecret.service.grouped_by import GroupedBy
from topsecret.service.preview import Length
from topsecret.service.ranked_by import UNSAID, RankedBy
from topsecret.service.texts import check_sendable, shown

WORKING, ANSWERED, REFUSED, FAILED, IN_DOUBT = (
    "working",
    "answered",
    "refused",
    "failed",
    "in-doubt",
)
_PARTS = ("column", "verb", "value")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question in public terms."""

    column: str
    k: Length
    epsilon: float | None
    where: tuple[Filter, ...] = ()
    counts: bool = False
    at_least: int | None = None
    query: str | None = None
    """The SQL, of a question that was asked in SQL; the rest says what it asks."""
    ranked_by: RankedBy | None = None
    """Rows or a sum; None for people."""
    grouped_by: GroupedBy | None = None
    """The groups that have a list each; None for one list."""
    max_items: int | None = None
    """The query's own cap on one person's items, beside the owner's; None where it has none."""

    @property
    def lists(self) -> int:
        """How many of its lists one person can be in."""
        groups = self.grouped_by
        return 1 if groups is None or groups.disjoint else len(groups.values)

    @property
    def thresholded(self) -> bool:
        """Whether all that pass a threshold are named."""
        return self.k == "all" or self.at_least is not None

    @property
    def words(self) -> str:
        """The question in a few words."""
        named = {"auto": "Most common values", "all": "Values safe to name"}
        what = named[self.k] if isinstance(self.k, str) else f"Top {self.k}"
        many = "" if self.at_least is None else f" with at least {self.at_least:,} people"
        by = "" if self.ranked_by is None else self.ranked_by.words
        groups = "" if self.grouped_by is None else self.grouped_by.words
        sql = "" if self.query is None else ", in SQL"
        words = f"{what} of {self.column}{many}{in_words(self.where)}{by}{groups}{sql}"
        return str(shown(words)) if self._has_surrogates else words

    @property
    def _has_surrogates(self) -> bool:
        """Whether there may be half a pair in its texts, which JSON escapes."""
        return "\\ud" in self.to_text()

    def check(self) -> None:
        """Every text of it can be sent."""
        if self._has_surrogates:
            check_sendable(json.loads(self.to_text()))

    def to_text(self) -> str:
        """As it is stored; what version 0.1 could ask is written as it wrote it."""
        more: dict[str, object] = {"where": self.where} if self.where else {}
        more |= {"counts": True} if self.counts else {}
        more |= {} if self.at_least is None else {"at_least": self.at_least}
        more |= {} if self.query is None else {"query": self.query}
        more |= {} if self.ranked_by is None else {"measure": self.ranked_by.to_dict()}
        more |= {} if self.grouped_by is None else {"groups": self.grouped_by.to_dict()}
        more |= {} if self.max_items is None else {"max_items": self.max_items}
        return json.dumps([self.column, self.k, self.epsilon, *([more] if more else [])])

    def to_dict(self) -> dict[str, object]:
        """As plain values that JSON can hold."""
        by, groups = self.ranked_by, self.grouped_by
        found: dict[str, object] = {
            "column": self.column,
            "k": self.k,
            "epsilon": self.epsilon,
            "where": [dict(zip(_PARTS, one, strict=True)) for one in self.where],
            "counts": self.counts,
            "at_least": self.at_least,
            "query": self.query,
            "measure": None if by is None else UNSAID | by.to_dict(),
            "groups": None if groups is None else groups.to_dict(),
        }
        return dict(shown(found)) if self._has_surrogates else found

    @classmethod
    def from_text(cls, text: str) -> Asked:
        """As it was stored."""
        column, k, epsilon, *more = json.loads(text)
        extra = more[0] if more else {}
        where = tuple((one[0], one[1], one[2]) for one in extra.get("where", ()))
        more = (extra.get("counts", False), extra.get("at_least"), extra.get("query"))
        by = RankedBy.from_dict(extra["measure"]) if "measure" in extra else None
        groups = GroupedBy.from_dict(extra["groups"]) if "groups" in extra else None
        return cls(column, k, epsilon, where, *more, by, groups, extra.get("max_items"))


@dataclass(frozen=True, slots=True)
class Job:
    """A question and what became of it, as it may be shown now."""

    id: str
    user: str
    dataset: str
    request: str
    asked: Asked
    state: str
    time: datetime
    error: str | None = None
    message: str | None = None
    release: Release | Releases | None = None
    cause: str | None = None
    """Why the data could not be read; for owners."""

    def to_dict(self) -> dict[str, object]:
        """As plain values that JSON can hold."""
        return {
            "id": self.id,
            "dataset": self.dataset,
            "request_id": self.request,
            **self.asked.to_dict(),
            "state": self.state,
            "asked": self.time.isoformat(timespec="seconds"),
            "error": self.error,
            "message": self.message,
            "answer": None if self.release is None else public(self.release),
        }


def seen(row: Mapping[Any, Any], now: float) -> Job:
    """A question as it may be shown ``now``, with its answer where the row has one.

    Its end is shown from its tick on.
    """
    ended = row["shown"] is not None and row["shown"] <= now
    release = None
    if ended and row.get("answer") is not None:
        release = from_record(json.loads(row["answer"]))
    return Job(
        row["id"],
        row["user"],
        row["dataset"],
        row["request"],
        Asked.from_text(row["question"]),
        row["state"] if ended else WORKING,
        datetime.fromtimestamp(row["asked"], UTC),
        row["error"] if ended else None,
        row["message"] if ended else None,
        release,
        row["cause"] if ended else None,
    )


def public(answer: Release | Releases) -> dict[str, object]:
    """The answer for an analyst; the file behind the dataset is the owner's business."""
    record = answer.to_dict()
    if isinstance(answer, Releases):
        lists = [{"group": group, "release": public(one)} for group, one in answer.items()]
        return record | {"groups": lists}
    del record["source"]
    return record
