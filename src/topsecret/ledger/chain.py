"""Entries and the hash chain that ties each to all before it.

>>> first = Entry.after(None, "checkins", "2026-01-01T00:00:00.000+00:00", "opened", {"a": "1"})
>>> second = Entry.after(first, "checkins", "2026-01-02T00:00:00.000+00:00", "closed", {})
>>> second.position, second.previous == first.hash, second.genuine()
(2, True, True)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

GENESIS = "0" * 64
"""What the first entry of a dataset has for its predecessor's hash."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event in the life of a dataset's budget."""

    dataset: str
    """The dataset's name."""
    position: int
    """1 for the first, without gaps."""
    time: str
    """When it was written, in UTC."""
    event: str
    """What happened, in a few words: "opened", "period written off"."""
    body: str
    """Canonical JSON."""
    previous: str
    """The hash of the entry before."""
    hash: str
    """The hash of this entry, which covers the one before."""

    @classmethod
    def after(
        cls, last: Entry | None, dataset: str, time: str, event: str, body: Mapping[str, object]
    ) -> Entry:
        """The entry that follows ``last``."""
        at, previous = (0, GENESIS) if last is None else (last.position, last.hash)
        return cls.at(dataset, at + 1, previous, event, body, time)

    @classmethod
    def at(
        cls,
        dataset: str,
        position: int,
        previous: str,
        event: str,
        body: Mapping[str, object],
        time: str,
    ) -> Entry:
        """The entry at this position, with its hash."""
        text = canonical(body)
        sealed = _seal(dataset, position, time, event, text, previous)
        return cls(dataset, position, time, event, text, previous, sealed)

    def genuine(self) -> bool:
        """Whether the hash is that of the entry."""
        fields = (self.dataset, self.position, self.time, self.event, self.body, self.previous)
        return self.hash == _seal(*fields)

    @property
    def record(self) -> dict[str, object]:
        """The body as a dictionary."""
        loaded: dict[str, object] = json.loads(self.body)
        return loaded


def canonical(value: object) -> str:
    """JSON in one form only: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def now() -> str:
    """The time as entries have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _seal(dataset: str, position: int, time: str, event: str, body: str, previous: str) -> str:
    return digest(canonical([dataset, position, time, event, body, previous]))
