"""Tables with one comparison per row, counted by any engine: who beat whom, and how often.

Items are compared as text, row by row. Rows without a winner, a loser or (where one is named) a
person are left out, and so are rows in which an item meets itself. Who met whom is public
(``ranking/comparisons.py``); who won is secret.

**A person's share is cut by the schedule alone.** With ``most_per_person`` = c every person keeps
at most c comparisons. A person's comparisons of one pair are numbered 1, 2, …; kept are the c with
the least keyed hash of (person, pair, number). Neither the pair nor the numbers depend on who won,
so the schedule that is left is the same however the person voted, and c of their votes are left.
Which of several votes on one pair bears which number is that person's own affair: they are numbered
by outcome, and since the hash picks numbers at random, the votes that stay are a fair sample.

>>> query = MatchQuery("winner", "loser", person="voter", most_per_person=5, salt=b"s" * 16)
>>> query.columns
('winner', 'loser', 'voter')
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.session import Engine
from topsecret.sources.source import SALT_BYTES, CountQuery, Kind, Schema
from topsecret.sources.sql.dialects import digest, readable
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.statements import EVENTS, column, derived, named, person_of

TIE_WORDS = ("1", "true", "t", "yes", "y", "tie", "tied", "draw")
"""What the tie column says, in small or capital letters, when a comparison had no winner."""


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """Which columns name the winner, the loser, a tie and the person who decided."""

    winner: str
    """The column of who won."""
    loser: str
    """The column of who lost."""
    tie: str | None = None
    """The column that says whether nobody won."""
    person: str | None = None
    """The column of who decided."""
    most_per_person: int | None = None
    """How many comparisons of each person are kept."""
    salt: bytes = field(default=b"", repr=False, compare=False)
    """The secret that chooses which are kept."""

    def __post_init__(self) -> None:
        names = [folded(name) for name in self.columns]
        if len(set(names)) != len(names):
            raise InvalidParameter(
                f"winner={self.winner!r}, loser={self.loser!r}, tie={self.tie!r} and "
                f"person={self.person!r} must be different columns"
            )
        if (self.person is None) != (self.most_per_person is None):
            raise InvalidParameter(
                f"person={self.person!r} and comparisons_per_person={self.most_per_person} go "
                "together: a person is protected in all of a limited number of comparisons"
            )
        cap = self.most_per_person
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or cap < 1):
            raise InvalidParameter(
                f"comparisons_per_person={cap!r} must be a whole number of at least 1"
            )
        if not self.salt:
            object.__setattr__(self, "salt", secrets.token_bytes(SALT_BYTES))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        named = (self.winner, self.loser, self.tie, self.person)
        return tuple(name for name in named if name is not None)


@dataclass(frozen=True, slots=True, repr=False)
class Matches:
    """Comparisons by place in ``items``: winners, losers, ties and how often each. Secret."""

    items: list[str]
    winners: NDArray[np.int64]
    losers: NDArray[np.int64]
    ties: NDArray[np.bool_]
    counts: NDArray[np.int64]


def read_matches(engine: Engine, query: MatchQuery) -> Matches:
    """Count the comparisons of each pair by outcome, in one statement."""
    # Without a person each comparison is protected by itself: no column is read as a person's.
    person = query.person or "(nobody)"
    with engine.session(CountQuery(query.winner, person, rows=1)) as session:
        events, schema = session.events(query.columns)
        return _numbered(session.run(tally(events, query, schema, session.dialect)))


def tally(events: exp.Expression, query: MatchQuery, schema: Schema, dialect: str) -> exp.Select:
    """(first, second, halves, times): pairs in the order of their texts, half wins of the first."""
    rows = _pairs(events, query, schema, dialect)
    source = "pairs"
    if query.most_per_person is not None:
        rows, source = _chosen(_occurrences(rows), query, dialect), "choices"
    kept = [column(name, source) for name in ("first", "second", "halves")]
    counts = exp.select(*kept, named(exp.Count(this=exp.Star()), "times"))
    counts = counts.from_(derived(rows, source)).group_by(*(part.copy() for part in kept))
    if query.most_per_person is not None:
        limit = exp.Literal.number(query.most_per_person)
        counts = counts.where(exp.LTE(this=column("choice", source), expression=limit))
    return counts


def _pairs(events: exp.Expression, query: MatchQuery, schema: Schema, dialect: str) -> exp.Select:
    """One row per comparison: the pair in order, the half wins of its first, and the person."""

    def text(name: str) -> exp.Expression:
        kind: Kind = "timestamp" if schema[name] == "timestamp" else "other"
        return readable(column(name, EVENTS), kind, dialect)

    shown = [named(text(query.winner), "winner"), named(text(query.loser), "loser")]
    if query.tie is not None:
        shown.append(named(text(query.tie), "tie"))
    present = [query.winner, query.loser]
    if query.person is not None:
        who = column(query.person, EVENTS)
        shown.append(named(person_of(who, query.person, schema, dialect), "person"))
        present.append(query.person)
    rows = (
        exp.select(*shown)
        .from_(exp.alias_(events, EVENTS, table=True, quoted=True))
        .where(*(_present(column(name, EVENTS)) for name in present))
    )
    winner, loser = column("winner", "matches"), column("loser", "matches")
    ahead = exp.LT(this=winner, expression=loser)
    halves = exp.case()
    if query.tie is not None:
        said = exp.Lower(this=exp.Trim(this=column("tie", "matches")))
        words = [exp.Literal.string(word) for word in TIE_WORDS]
        halves = halves.when(exp.In(this=said, expressions=words), exp.Literal.number(1))
    halves = halves.when(ahead.copy(), exp.Literal.number(2)).else_(exp.Literal.number(0))
    columns = [
        named(exp.case().when(ahead.copy(), winner.copy()).else_(loser.copy()), "first"),
        named(exp.case().when(ahead.copy(), loser.copy()).else_(winner.copy()), "second"),
        named(halves, "halves"),
    ]
    if query.person is not None:
        columns.append(column("person", "matches"))
    return (
        exp.select(*columns)
        .from_(derived(rows, "matches"))
        .where(exp.NEQ(this=winner.copy(), expression=loser.copy()))
    )


def _occurrences(pairs: exp.Select) -> exp.Select:
    """Each person's comparisons of one pair, numbered; equal outcomes are exchangeable."""
    kept = [column(name, "pairs") for name in ("first", "second", "halves", "person")]
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column(name, "pairs") for name in ("person", "first", "second")],
        order=exp.Order(expressions=[column("halves", "pairs")]),
    )
    return exp.select(*kept, named(number, "occurrence")).from_(derived(pairs, "pairs"))


def _chosen(rows: exp.Select, query: MatchQuery, dialect: str) -> exp.Select:
    """Each person's comparisons in the order of their keyed hashes, which know no outcome."""
    kept = [column(name, "votes") for name in ("first", "second", "halves")]
    parts = ("person", "first", "second", "occurrence")
    order = [digest(_message(query.salt, parts), dialect), *(column(n, "votes") for n in parts[1:])]
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column("person", "votes")],
        order=exp.Order(expressions=order),
    )
    return exp.select(*kept, named(number, "choice")).from_(derived(rows, "votes"))


def _message(salt: bytes, names: Sequence[str]) -> exp.Expression:
    """The salt, then each part as text with its length in front: no two choices share one."""
    joined: exp.Expression = exp.Literal.string(f"{salt.hex()}:match:")
    for name in names:
        text = exp.cast(column(name, "votes"), exp.DataType.Type.TEXT)
        length = exp.cast(exp.Length(this=text.copy()), exp.DataType.Type.TEXT)
        for part in (length, exp.Literal.string(":"), text):
            joined = exp.DPipe(this=joined, expression=part, safe=False)
    return joined


def _present(value: exp.Expression) -> exp.Expression:
    return exp.not_(exp.Is(this=value, expression=exp.null()))


def _numbered(rows: Sequence[tuple[Any, ...]]) -> Matches:
    firsts, seconds, halves, times = zip(*rows, strict=True) if rows else ((), (), (), ())
    items = sorted({*firsts, *seconds})
    places = {item: place for place, item in enumerate(items)}
    first = np.array([places[name] for name in firsts], dtype=np.int64)
    second = np.array([places[name] for name in seconds], dtype=np.int64)
    score = np.array(halves, dtype=np.int64)
    return Matches(
        items,
        np.where(score > 0, first, second),
        np.where(score > 0, second, first),
        score == 1,
        np.array(times, dtype=np.int64),
    )
