"""Several public groups of rows in one statement, each person in one of them alone.

The rows that count are read once. A person with rows in several groups stays in one, chosen by
that person's own hash. All groups are counted from these rows together, so that a relation that
gives other rows each time it is read (a sample, a file that grows) cannot put one person into two
lists.

*Which group.* Every group has a number x from 1 to 65,536 of its own, drawn from the salt
(``numbered``). The first eight digits of ``md5(salt:home:, length of person, person)`` are two
numbers of the person, a from 1 to 65,536 and b. The person stays in the group with the least
(a x + b) mod 65,537. That is a prime, so no two groups have the same, and of two groups each is the
lesser for half of the people. One hash a person and whole numbers in each row: a hash for each
person and group took longer than all the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.domains.domain import Value
from topsecret.sources.source import CountQuery, Kind, Schema
from topsecret.sources.sql.bounded_totals import totals_of_pairs
from topsecret.sources.sql.conditions import Condition
from topsecret.sources.sql.dialects import ascending, digest
from topsecret.sources.sql.filters import holds
from topsecret.sources.sql.statements import (
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

PRIME = 65_537
"""The numbers that choose a group are taken modulo this."""

DIGITS = "0123456789abcdef"
FEW = 8
"""So many groups are compared with a row's one by one; among more, the half is found first."""


def numbered(query: CountQuery) -> dict[Value, int]:
    """The groups of a question, each with its number in the statement.

    >>> from topsecret.sources import GroupAssignment
    >>> home = GroupAssignment("country", ("DE", "FR"), "DE")
    >>> numbered(CountQuery("place", "user", 3, home=home, salt=bytes(16)))
    {'DE': 24077, 'FR': 43546}
    """
    assert query.home is not None
    groups = query.home.groups
    if len(groups) >= PRIME:
        raise InvalidParameter(f"{len(groups)} groups are too many; ask about {PRIME - 1} at most")
    found: dict[Value, int] = {}
    taken: set[int] = set()
    for group in groups:
        drawn = hashlib.md5(f"{query.salt.hex()}:group:{group}".encode()).hexdigest()
        number = int(drawn[:4], 16)
        while number in taken:
            number = (number + 1) % (PRIME - 1)
        taken.add(number)
        found[group] = number + 1
    return found


def counts_by_group(
    events: exp.Expression,
    query: CountQuery,
    schema: Schema,
    dialect: str,
    members: exp.Expression | None = None,
    once: Once = lambda select: select,
) -> exp.Select:
    """Every item of every group with its number of distinct people: (home, item, …, persons).

    ``home`` is the group's number (``numbered``). With another measure ``persons`` holds the
    scores: where a person's total is bounded, that of their one group.
    """
    # Rows are made distinct once most of them are gone.
    kept = per_person(_at_home(query), query, ["home"])
    bounded = query.measure is not None and query.measure.total
    count = totals_of_pairs if bounded else counted_pairs
    counts = count(kept, query, schema, dialect, ["home"])
    return _with_homes(counts, events, query, schema, dialect, members, once)


def persons_by_group(
    events: exp.Expression,
    query: CountQuery,
    schema: Schema,
    dialect: str,
    members: exp.Expression | None = None,
    once: Once = lambda select: select,
) -> exp.Select:
    """How many distinct people every group has that has any: (home, persons).

    *Guarantee.* A group's number moves whenever a count of that group does: the people are those
    of its pairs, in the groups that the counts have them in.
    """
    home = column("home", "everybody")
    kept: Any = per_person(_at_home(query), query, ["home"])
    pairs = derived(kept, "pairs")
    shown = [column(name, "pairs") for name in ("home", "person")]
    everybody = exp.select(*shown, copy=False).distinct(copy=False).from_(pairs, copy=False)
    counts: Any = exp.select(home, named(exp.Count(this=exp.Star()), "persons"), copy=False)
    counts = counts.from_(derived(everybody, "everybody"), copy=False)
    counts = counts.group_by(home.copy(), copy=False)
    return _with_homes(counts, events, query, schema, dialect, members, once)


def _at_home(query: CountQuery) -> exp.Select:
    """The rows of each person's one group."""
    names = (*item_names(query), "person", "home", *_amounts(query))
    same = exp.and_(
        exp.EQ(this=column("person", "read"), expression=column("person", "homes")),
        exp.EQ(this=column("home", "read"), expression=column("chosen", "homes")),
        copy=False,
    )
    return (
        exp.select(*(column(name, "read") for name in names), copy=False)
        .from_(_table("read"), copy=False)
        .join(_table("homes"), on=same, copy=False)
    )


def _with_homes(
    counts: exp.Select,
    events: exp.Expression,
    query: CountQuery,
    schema: Schema,
    dialect: str,
    members: exp.Expression | None,
    once: Once,
) -> exp.Select:
    """The rows of all groups, read once, and each person's one group, in front of ``counts``."""
    assert query.home is not None
    home = named(_home(query, schema, dialect), "home")
    kept = event_rows(events, query, schema, dialect, [home])
    among = Condition(query.home.column, "in", query.home.groups)
    kept = kept.where(*holds((among,), schema, dialect), copy=False)
    if members is not None:
        kept = members_only(kept, item_names(query), members, ["home", *_amounts(query)])
    materialized = True if dialect in MATERIALIZED else None
    read, homes = once(kept), _homes(query, schema, dialect)
    counts = counts.with_(_name("read"), as_=read, materialized=materialized, copy=False)
    return counts.with_(_name("homes"), as_=homes, copy=False)


def _amounts(query: CountQuery) -> list[str]:
    return [] if query.measure is None or query.measure.column is None else ["amount"]


def leading_by_group(counts: exp.Expression, query: CountQuery, dialect: str) -> exp.Select:
    """The leading rows of each group: (home, item, …, persons), best first within its group."""
    names = ["home", *item_names(query), "persons"]
    values = [column(name, "counts") for name in names]
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[values[0].copy()],
        order=exp.Order(expressions=ranking(values[-1].copy(), values[1:-1], dialect)),
    )
    placed = exp.select(*values, named(place, "place"), copy=False).from_(
        exp.alias_(counts, "counts", table=True, quoted=True), copy=False
    )
    last = exp.LTE(this=column("place", "placed"), expression=exp.Literal.number(query.rows))
    shown = exp.select(*(column(name, "placed") for name in names), copy=False)
    leading = shown.from_(derived(placed, "placed"), copy=False).where(last, copy=False)
    ordered = [ascending(column(name, "placed"), dialect) for name in ("home", "place")]
    leading.set("order", exp.Order(expressions=ordered))
    return leading


def _homes(query: CountQuery, schema: Schema, dialect: str) -> exp.Select:
    """Each person with the number of their one group."""
    everybody = exp.select(column("person", "read"), copy=False).distinct(copy=False)
    everybody = everybody.from_(_table("read"), copy=False)
    hashed = digest(message(query, schema, dialect, [], ":home:"), dialect)
    person = column("person", "pairs")
    digits = exp.select(person, named(hashed, "digits"), copy=False).from_(
        derived(everybody, "pairs"), copy=False
    )
    first = exp.Sub(this=_drawn(1), expression=_number(16**3 + 16**2 + 16))
    numbers = exp.select(
        column("person", "hashed"), named(first, "factor"), named(_drawn(5), "shift"), copy=False
    ).from_(derived(digits, "hashed"), copy=False)
    home = column("home", "read")
    product = exp.Mul(this=column("factor", "drawn"), expression=home)
    order = exp.Mod(
        this=exp.paren(exp.Add(this=product, expression=column("shift", "drawn")), copy=False),
        expression=_number(PRIME),
    )
    # The least, with the group's number behind it.
    least = exp.Min(
        this=exp.Add(
            this=exp.Mul(this=exp.paren(order, copy=False), expression=_number(PRIME)),
            expression=home.copy(),
        )
    )
    who = column("person", "read")
    same = exp.EQ(this=who.copy(), expression=column("person", "drawn"))
    chosen = exp.Mod(this=least, expression=_number(PRIME))
    return (
        exp.select(who, named(chosen, "chosen"), copy=False)
        .from_(_table("read"), copy=False)
        .join(derived(numbers, "drawn"), on=same, copy=False)
        .group_by(who.copy(), copy=False)
    )


def _drawn(start: int) -> exp.Expression:
    """Four digits of a person's hash, each from 1 to 16, as a number."""
    total: exp.Expression | None = None
    for place in range(4):
        digit = exp.Substring(
            this=column("digits", "hashed"),
            start=_number(start + place),
            length=_number(1),
        )
        value = exp.StrPosition(this=exp.Literal.string(DIGITS), substr=digit)
        part = exp.Mul(this=whole(value), expression=_number(16 ** (3 - place)))
        total = part if total is None else exp.Add(this=total, expression=part)
    assert total is not None
    return exp.paren(total, copy=False)


def _home(query: CountQuery, schema: Schema, dialect: str) -> exp.Expression:
    """The number of the row's group, by the same comparison that keeps the row."""
    home = query.home
    assert home is not None
    types = {type(group) for group in home.groups}
    if len(types) > 1:
        raise InvalidParameter("groups must be all text, all whole numbers or all truth values")
    numbers = list(numbered(query).items())
    kind: Kind = schema[home.column]
    if (kind, types) in (("text", {str}), ("integer", {int})):
        numbers.sort()  # as the engine compares them: by code point, or by value
    else:
        return whole(_cases(home.column, numbers, schema, dialect, len(numbers)))
    return whole(_cases(home.column, numbers, schema, dialect, FEW))


def _cases(
    name: str, numbers: Sequence[tuple[Value, int]], schema: Schema, dialect: str, few: int
) -> exp.Expression:
    """The number that belongs to the value of a column."""

    def is_(operator: str, group: Value) -> exp.Expression:
        return holds((Condition(name, operator, group),), schema, dialect)[0]

    cases = exp.case()
    if len(numbers) <= few:
        for group, number in numbers:
            cases.when(is_("=", group), _number(number), copy=False)
        return cases
    half = len(numbers) // 2
    below, above = (
        _cases(name, part, schema, dialect, few) for part in (numbers[:half], numbers[half:])
    )
    cases.when(is_("<", numbers[half][0]), below, copy=False)
    return cases.else_(above, copy=False)


def whole(value: exp.Expression) -> exp.Expression:
    """A whole number of 64 bits: products of two of 32 would be too large."""
    return exp.cast(value, exp.DataType.Type.BIGINT, copy=False)


def _number(value: int) -> Any:
    return exp.Literal.number(value)


def _name(name: str) -> Any:
    return exp.to_identifier(name, quoted=True)


def _table(name: str) -> Any:
    return exp.Table(this=_name(name))
