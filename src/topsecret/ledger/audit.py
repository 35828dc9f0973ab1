"""The audit: the hash chain, and every other table against what the entries say.

The chain finds an entry that was changed, removed or put in, with its position. Whoever can rewrite
the whole chain from some entry on, and the dataset's row, is found only by comparing the chain's
end with one that was noted elsewhere: ``Report.heads``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, select

from topsecret.ledger import rows
from topsecret.ledger.amounts import Amounts, as_text, from_text, minus, plus, shortages
from topsecret.ledger.chain import GENESIS, Entry, canonical, digest
from topsecret.ledger.rows import amounts, budget_of
from topsecret.ledger.schema import (
    ALLOWANCES,
    ANSWERS,
    DATASETS,
    ENTRIES,
    PERIODS,
    PUBLICATIONS,
    RESERVATIONS,
)

ENDINGS = tuple(rows.ENDED_BY)
PERIOD_STATES = {
    "period begun": "begun",
    "period stored": "stored",
    "period failed": "failed",
    "period released": None,
    "period written off": None,
}
"""The state that each event leads a period of a publication to; None: as if it had not begun."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as the entries say."""

    dataset: str
    """The dataset whose history it is."""
    position: int
    """Of the entry that is wrong, or that shows that another row is."""
    what: str
    """What is wrong, in words."""

    def __str__(self) -> str:
        return f"dataset {self.dataset!r}, entry {self.position}: {self.what}"


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit found; empty ``faults`` mean that all is well."""

    entries: int
    """How many entries were looked at."""
    heads: dict[str, str]
    """The chain's end per dataset: note it elsewhere to notice a chain that was rewritten."""
    faults: tuple[Fault, ...]
    """What was found."""


@dataclass(slots=True)
class _Reserved:
    entry: Entry
    body: dict[str, Any]
    state: str
    cost: Amounts
    answer: str | None = None
    last: int = 0
    """The position of the entry that ended it."""


@dataclass(slots=True)
class _Replay:
    """A dataset's life, told by its entries."""

    dataset: str
    opened: dict[str, Any] | None = None
    closed: bool = False
    count: int = 0
    head: str = GENESIS
    spent: Amounts = field(default_factory=dict)
    analysts: dict[str, Amounts] = field(default_factory=dict)
    limits: dict[str, dict[str, str]] = field(default_factory=dict)
    allowed_at: dict[str, int] = field(default_factory=dict)
    reservations: dict[str, _Reserved] = field(default_factory=dict)
    publications: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The name and the key's digest of each."""
    periods: dict[tuple[str, int], tuple[str, str | None]] = field(default_factory=dict)
    """The state and the answer's digest of each period."""

    def follow(self, entry: Entry) -> Iterator[str]:
        """Take the next entry in; yield what is wrong with it."""
        if entry.position != self.count + 1:
            yield f"entry {self.count + 1} is missing before it"
        if not entry.genuine():
            yield "it was changed: its hash is not that of its content"
        elif entry.previous != self.head:
            yield "it does not follow the entry before it: one of them was put in or removed"
        self.count, self.head = entry.position, entry.hash
        try:
            yield from self._take(entry, entry.record)
        except (KeyError, TypeError, ValueError, ArithmeticError):
            yield f"its content is not that of an entry {entry.event!r}"

    def _take(self, entry: Entry, body: dict[str, Any]) -> Iterator[str]:
        if entry.event == "opened":
            self.opened = body
            if not budget_of(body["terms"]).holds():
                yield "the terms of the budget do not keep to its total"
        elif entry.event == "allowed":
            self.limits[body["analyst"]] = body["limits"]
            self.allowed_at[body["analyst"]] = entry.position
        elif entry.event == "closed":
            self.closed = True
        elif entry.event in (rows.RESERVED, rows.HELD):
            cost = from_text(body["cost"])
            reserved = _Reserved(entry, body, entry.event, cost, last=entry.position)
            self.reservations[body["reservation"]] = reserved
            self._spend(body["analyst"], cost, {})
            yield from self._within(body["analyst"])
        elif entry.event in ENDINGS:
            reserved = self.reservations[body["reservation"]]
            ends = ENDINGS if reserved.state == rows.RESERVED else ("released",)
            if reserved.state not in (rows.RESERVED, rows.HELD) or entry.event not in ends:
                yield "it ends a reservation that had ended, or was only held"
            cost = from_text(body["cost"])
            if shortages(cost, reserved.cost):
                yield "it costs more than was reserved"
            self._spend(reserved.body["analyst"], cost, reserved.cost)
            reserved.state, reserved.cost = rows.ENDED_BY[entry.event], cost
            reserved.answer, reserved.last = body.get("answer"), entry.position
        elif entry.event == "published":
            self.publications[body["reservation"]] = body["name"], body["key"]
            if self.reservations[body["reservation"]].state != rows.SETTLED:
                yield "it publishes what was not paid for"
        elif entry.event in PERIOD_STATES:
            yield from self._period(PERIOD_STATES[entry.event], body)
        else:
            yield f"its event {entry.event!r} is unknown"

    def _period(self, state: str | None, body: dict[str, Any]) -> Iterator[str]:
        key = body["reservation"], body["period"]
        before = self.periods.pop(key, ("", None))[0]
        if key[0] not in self.publications:
            yield "its publication has no entry"
        if (before == "") != (state == "begun") or before == "stored":
            yield "it does not follow from the period's state before it"
        if state is not None:
            self.periods[key] = state, body.get("answer")

    def _spend(self, analyst: str, more: Amounts, less: Amounts) -> None:
        self.spent = minus(plus(self.spent, more), less)
        self.analysts[analyst] = minus(plus(self.analysts.get(analyst, {}), more), less)

    def _within(self, analyst: str) -> Iterator[str]:
        if self.opened is None or shortages(self.spent, budget_of(self.opened["terms"]).limits):
            yield "it was admitted although the budget was spent"
        limits = self.limits.get(analyst)
        if limits is not None and shortages(self.analysts[analyst], from_text(limits)):
            yield "it was admitted although the analyst's allowance was spent"


def audit(connection: Connection) -> Report:
    """Check everything, in one consistent view of the ledger."""
    faults: list[Fault] = []
    replays: dict[str, _Replay] = {}
    query = select(ENTRIES).order_by(ENTRIES.c.dataset, ENTRIES.c.position)
    for row in connection.execute(query).mappings():
        entry = Entry(**row)
        replay = replays.setdefault(entry.dataset, _Replay(entry.dataset))
        faults += [Fault(entry.dataset, entry.position, what) for what in replay.follow(entry)]
    datasets = _by(connection, DATASETS, "name")
    answers = _by(connection, ANSWERS, "reservation")
    reservations = _by(connection, RESERVATIONS, "id")
    for name in datasets.keys() - replays.keys():
        faults.append(Fault(name, 1, "its entries are missing"))
    for name, replay in replays.items():
        faults += _sums(replay, datasets.get(name))
        faults += _allowances(connection, replay)
        for identity, reserved in replay.reservations.items():
            mine, answer = reservations.pop(identity, None), answers.pop(identity, None)
            faults += [
                Fault(name, reserved.last, what)
                for what in _reservation(identity, name, reserved, mine, answer)
            ]
    faults += _publications(connection, replays)
    for identity, row in reservations.items():
        faults.append(
            Fault(row["dataset"], row["position"], f"reservation {identity} has no entry")
        )
    faults += [Fault("", 0, f"the answer of {identity} has no entry") for identity in answers]
    heads = {name: replay.head for name, replay in sorted(replays.items())}
    total = sum(replay.count for replay in replays.values())
    faults.sort(key=lambda fault: (fault.dataset, fault.position))
    return Report(total, heads, tuple(faults))


def _publications(connection: Connection, replays: dict[str, _Replay]) -> Iterator[Fault]:
    """Names, keys and periods, against the entries."""
    named = {
        row["reservation"]: (row["dataset"], row["name"], digest_of(row["key"]))
        for row in connection.execute(select(PUBLICATIONS)).mappings()
    }
    periods = {
        (row["reservation"], row["period"]): (
            row["state"],
            None if row["answer"] is None else digest_of(row["answer"]),
        )
        for row in connection.execute(select(PERIODS)).mappings()
    }
    for name, replay in replays.items():
        for identity, (title, key) in replay.publications.items():
            if named.pop(identity, None) != (name, title, key):
                yield Fault(name, replay.count, f"the row of publication {identity} is another")
        for which, state in replay.periods.items():
            if periods.pop(which, None) != state:
                what = f"period {which[1]} of publication {which[0]} is another"
                yield Fault(name, replay.count, what)
    for identity in named:
        yield Fault("", 0, f"publication {identity} has no entry")
    for identity, period in periods:
        yield Fault("", 0, f"period {period} of publication {identity} has no entry")


def _by(connection: Connection, table: Table, key: str) -> dict[str, RowMapping]:
    return {row[key]: row for row in connection.execute(select(table)).mappings()}


def _sums(replay: _Replay, row: RowMapping | None) -> Iterator[Fault]:
    def fault(what: str) -> Fault:
        return Fault(replay.dataset, replay.count, what)

    if row is None or replay.opened is None:
        yield fault("the dataset's row is missing")
        return
    if (row["entries"], row["head"]) != (replay.count, replay.head):
        yield fault(f"the chain must end with entry {row['entries']}: entries are missing or added")
    if any(row[name] != replay.opened.get(name) for name in ("terms", "person", "adjacency")):
        yield Fault(replay.dataset, 1, "the dataset's row has other terms than its first entry")
    if row["state"] != (rows.CLOSED if replay.closed else rows.OPEN):
        yield fault("the dataset's row has another state")
    if row["spent"] != canonical(as_text(replay.spent)):
        yield fault("the dataset's row has another sum than its entries")


def _allowances(connection: Connection, replay: _Replay) -> Iterator[Fault]:
    query = select(ALLOWANCES).where(ALLOWANCES.c.dataset == replay.dataset)
    found = {row["analyst"]: row for row in connection.execute(query).mappings()}
    for analyst in found.keys() | replay.limits.keys():
        row, limits = found.get(analyst), replay.limits.get(analyst)
        right = (
            row is not None
            and limits is not None
            and json.loads(row["limits"]) == limits
            and _same(row["spent"], replay.analysts.get(analyst, {}))
        )
        if not right:
            position = replay.allowed_at.get(analyst, replay.count)
            yield Fault(replay.dataset, position, f"the allowance of {analyst!r} is another")


def _reservation(
    identity: str,
    dataset: str,
    reserved: _Reserved,
    row: RowMapping | None,
    answer: RowMapping | None,
) -> Iterator[str]:
    kept = reserved.state in (rows.RESERVED, rows.SETTLED, rows.FAILED)
    expected = {
        "dataset": dataset,
        "analyst": reserved.body.get("analyst"),
        "question": reserved.body.get("question"),
        "request": reserved.body.get("request") if kept else None,
        "state": reserved.state,
        "position": reserved.entry.position,
        "time": reserved.entry.time,
    }
    if row is None:
        yield f"the row of reservation {identity} is missing"
    elif any(row[name] != value for name, value in expected.items()) or not _same(
        row["cost"], reserved.cost
    ):
        yield f"the row of reservation {identity} is another"
    stored = None if answer is None else digest_of(answer["answer"])
    if stored != reserved.answer:
        yield f"the stored answer of reservation {identity} is another"


def digest_of(text: str) -> str:
    """The digest of a text that may have been tampered with."""
    return digest(text) if text.isascii() else ""


def _same(text: str, expected: Amounts) -> bool:
    try:
        return as_text(amounts(text)) == as_text(expected)
    except (ValueError, TypeError, AttributeError, ArithmeticError):
        return False
