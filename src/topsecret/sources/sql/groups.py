"""Several public groups of rows in one statement, each person in one of them alone.

The rows that count are read once. A person with rows in several groups stays in the one with the
least ``md5(salt:home:, length of person, person, length of group, group)``. All groups are counted
from these rows together, so that a relation that gives other rows each time it is read (a sample,
a file that grows) cannot put one person into two lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.domains.domain import Value
from topsecret.sources.source import CountQuery, GroupAssignment, Kind, Schema
from topsecret.sources.sql.conditions import Condition
from topsecret.sources.sql.dialects import as_text, ascending, counted, digest
from topsecret.sources.sql.filters import holds
from topsecret.sources.sql.statements import (
    EVENTS,
    column,
    counted_pairs,
    derived,
    event_rows,
    item_names,
    members_only,
    message,
    named,
    per_person,
    ranking,
)

Once = Callable[[exp.Select], exp.Select]
"""How an engine reads a select once that a statement uses twice."""

MATERIALIZED = {"duckdb", "postgres", "sqlite"}
"""Engines that are told to read a part of a statement once."""

HASH = 32
"""Digits of the hash in front of the group's label."""


def label(group: Value) -> str:
    """A group's name as text, the same on every engine.

    >>> [label(group) for group in ("DE", 7, True)]
    ['DE', '7', 'true']
    """
    return str(group).lower() if isinstance(group, bool) else str(group)


def counts_by_group(
    events: exp.Expression,
    query: CountQuery,
    schema: Schema,
    dialect: str,
    members: exp.Expression | None = None,
    once: Once = lambda select: select,
) -> exp.Select:
    """Every item of every group with its number of distinct persons: (home, item, …, persons)."""
    assert query.home is not None
    home = named(_home(query.home, schema, dialect), "home")
    names = item_names(query)
    measure = query.measure
    amounts = [] if measure is None or measure.column is None else ["amount"]
    kept = event_rows(events, query, schema, dialect, [home])
    among = Condition(query.home.column, "in", query.home.groups)
    kept = kept.where(*holds((among,), schema, dialect))
    if members is not None:
        kept = members_only(kept, names, members, ["home", *amounts])
    own = exp.Substring(this=column("chosen", "homes"), start=exp.Literal.number(HASH + 1))
    same = exp.and_(
        exp.EQ(this=column("person", "read"), expression=column("person", "homes")),
        exp.EQ(this=column("home", "read"), expression=own),
    )
    # Rows are made distinct once most of them are gone.
    at_home = (
        exp.select(*(column(name, "read") for name in (*names, "person", "home", *amounts)))
        .from_(_table("read"))
        .join(_table("homes"), on=same)
    )
    counts = counted_pairs(per_person(at_home, query, ["home"]), query, schema, dialect, ["home"])
    materialized = True if dialect in MATERIALIZED else None
    counts = counts.with_(_name("read"), as_=once(kept), materialized=materialized)
    return counts.with_(_name("homes"), as_=_homes(query, schema, dialect))


def leading_by_group(counts: exp.Expression, query: CountQuery, dialect: str) -> exp.Select:
    """The leading rows of each group: (home, item, …, persons), best first within its group."""
    names = ["home", *item_names(query), "persons"]
    values = [column(name, "counts") for name in names]
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[values[0].copy()],
        order=exp.Order(expressions=ranking(values[-1].copy(), values[1:-1], dialect)),
    )
    placed = exp.select(*values, named(place, "place")).from_(
        exp.alias_(counts, "counts", table=True, quoted=True)
    )
    last = exp.LTE(this=column("place", "placed"), expression=exp.Literal.number(query.rows))
    shown = exp.select(*(column(name, "placed") for name in names))
    leading = shown.from_(derived(placed, "placed")).where(last)
    ordered = [ascending(column(name, "placed"), dialect) for name in ("home", "place")]
    leading.set("order", exp.Order(expressions=ordered))
    return leading


def _homes(query: CountQuery, schema: Schema, dialect: str) -> exp.Select:
    """Each person with their one group: its hash, then its label."""
    apart = exp.select(column("person", "read"), column("home", "read"))
    apart = apart.distinct().from_(_table("read"))
    hashed = digest(message(query, schema, dialect, ["home"], ":home:"), dialect)
    key = exp.DPipe(this=hashed, expression=column("home", "pairs"), safe=False)
    least = exp.Min(this=as_text(key, dialect))
    person = column("person", "pairs")
    chosen = exp.select(person, named(least, "chosen"))
    return chosen.from_(derived(apart, "pairs")).group_by(person.copy())


def _home(home: GroupAssignment, schema: Schema, dialect: str) -> exp.Expression:
    """The label of the row's group, by the same comparison that keeps the row."""
    kind: Kind = schema[home.column]
    if len({type(group) for group in home.groups}) > 1:
        raise InvalidParameter("groups must be all text, all whole numbers or all truth values")
    value = column(home.column, EVENTS)
    if kind == "text" and isinstance(home.groups[0], str):
        return counted(value, kind, dialect)
    cases = exp.case()
    for group in home.groups:
        same = holds((Condition(home.column, "=", group),), schema, dialect)
        cases = cases.when(same[0], exp.Literal.string(label(group)))
    return as_text(cases, dialect)


def _name(name: str) -> Any:
    return exp.to_identifier(name, quoted=True)


def _table(name: str) -> Any:
    return exp.Table(this=_name(name))
