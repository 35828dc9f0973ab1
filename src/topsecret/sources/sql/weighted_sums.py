"""The sum of weights per item: one statement, rendered for an engine's dialect.

A person with n distinct items adds the n-th weight of a public table to each of them. Of a
person with more items than the table is long those count that come first by the keyed hash of the
cap, then by the item: a function of their own pairs and the salt. The hash is computed for these
people alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from topsecret.sources.source import CountQuery, Schema
from topsecret.sources.sql.statements import choice_order, column, derived, item_names, named

SORTED = {"postgres"}
"""Engines that sort the pairs by person and count a person's items by a window as they go."""
ONE_STATEMENT = {"postgres", "duckdb"}
"""Engines that are faster with the pairs named in the statement than with a table of them."""


def weighted_sums(
    pairs: exp.Expression,
    weights: exp.Expression,
    longest: int,
    query: CountQuery,
    schema: Schema,
    dialect: str,
) -> exp.Select:
    """Every item with its sum of weights and its number of people: (item, …, weighted, persons).

    ``pairs`` is a relation of the distinct pairs (item, …, person), for ``ONE_STATEMENT`` the
    select that ``person_items`` makes, as a sub-query; ``weights`` is one of
    (items, weight) for 1 to ``longest`` items. People are counted after the cut to
    ``query.max_items``, which is never below ``longest``, or before any cut without one. So an item
    may have people and a sum of 0: none of its pairs is among the ``longest`` of its person. Its
    sum was not observed, its people were.
    """
    names = item_names(query)
    if dialect in SORTED:
        return _by_sorting(pairs, weights, longest, query, schema, dialect)
    # A table is read where it is needed: engines would copy one that is given another name in WITH.
    kept_pairs = pairs if isinstance(pairs, exp.Table) else _named_before("pairs")
    everybody: Any = exp.alias_(kept_pairs.copy(), "pairs", table=True, quoted=True)
    few = exp.LTE(this=column("items", "sizes"), expression=_number(longest))
    light = _joined(everybody, names, [named(column("weight", "sizes"), "weight")]).where(few)
    many = exp.GT(this=column("items", "sizes"), expression=_number(longest))
    number = _choice(choice_order(query, schema, dialect))
    shown = [column("weight", "sizes"), named(number, "choice")]
    numbered = _joined(everybody, names, shown).where(many)
    heavy = _kept(numbered, column("weight", "choices"), longest, query)
    summed = _summed(exp.union(light, heavy, distinct=False), names)
    size: Any = column("items", "counted")
    weight: Any = column("weight", "weights")
    if dialect == "duckdb":  # its joins and sums are faster for small types
        beyond = exp.GT(this=size, expression=_number(longest))
        limited = exp.case().when(beyond, _number(longest + 1)).else_(size.copy())
        size, weight = (exp.cast(one, exp.DataType.Type.SMALLINT) for one in (limited, weight))
    shown = [column("person", "counted"), named(size, "items"), named(weight, "weight")]
    weighted = exp.select(*shown).from_(derived(_sizes(everybody), "counted"))
    weighted = _weighed(weighted, weights, column("items", "counted"), longest)
    # Both are read twice: where no table of them was made, the statement names them.
    if kept_pairs is not pairs:
        columns = [column(name, "kept_pairs") for name in (*names, "person")]
        source = exp.alias_(pairs.copy(), "kept_pairs", table=True, quoted=True)
        summed = summed.with_(
            exp.to_identifier("pairs", quoted=True),
            as_=exp.select(*columns).from_(source),
            materialized=True if dialect == "duckdb" else None,
        )
    return summed.with_(exp.to_identifier("sizes", quoted=True), as_=weighted)


def _by_sorting(
    pairs: exp.Expression,
    weights: exp.Expression,
    longest: int,
    query: CountQuery,
    schema: Schema,
    dialect: str,
) -> exp.Select:
    """Two sorts: by person, which finds distinct pairs and counts them, then by item.

    PostgreSQL guesses few distinct pairs and few items, and would hash millions of them, which
    took it twice as long.
    """
    names = item_names(query)
    size = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[column("person", "pairs")])
    columns = [column(name, "pairs") for name in (*names, "person")]
    sized = exp.select(*columns, named(size, "items")).from_(
        exp.alias_(_told_apart(pairs, len(names)), "pairs", table=True, quoted=True)
    )
    items = [column(name, "pairs") for name in names]
    source: Any = exp.alias_(_named_before("sized"), "pairs", table=True, quoted=True)
    size_of_one = column("items", "pairs")
    few = exp.LTE(this=size_of_one, expression=_number(longest))
    light = exp.select(*items, column("weight", "weights")).from_(source).where(few)
    many = exp.GT(this=size_of_one.copy(), expression=_number(longest))
    choice = named(_choice(choice_order(query, schema, dialect)), "choice")
    numbered = exp.select(*items, size_of_one, choice).from_(source).where(many)
    heavy = _kept(numbered, column("weight", "weights"), longest, query)
    parts: Any = exp.union(
        _weighed(light, weights, size_of_one.copy(), longest),
        _weighed(heavy, weights, column("items", "choices"), longest),
        distinct=False,
    )
    order = [exp.column(exp.to_identifier(name, quoted=True)) for name in names]
    return _summed(parts.order_by(*order), names).with_(
        exp.to_identifier("sized", quoted=True), as_=sized
    )


def _told_apart(pairs: exp.Expression, columns: int) -> exp.Expression:
    """The pairs, their DISTINCT by a sort: first by person, then by the columns of the item."""
    pairs = pairs.copy()
    select: Any = pairs.this
    if select.args.get("distinct") is None:  # pairs of a public domain are chosen among them
        select = select.find(exp.From).this.this
    places = [_number(place) for place in (columns + 1, *range(1, columns + 1))]
    select.args["distinct"].set("on", exp.Tuple(expressions=places))
    return pairs


def _choice(order: list[exp.Ordered]) -> exp.Window:
    return exp.Window(
        this=exp.RowNumber(),
        partition_by=[column("person", "pairs")],
        order=exp.Order(expressions=order),
    )


def _kept(
    numbered: exp.Select, weight: exp.Expression, longest: int, query: CountQuery
) -> exp.Select:
    """The weight of each numbered pair: 0 beyond the table's length; none beyond a larger cap."""
    choice = column("choice", "choices")
    kept = exp.LTE(this=choice, expression=_number(longest))
    weighed = exp.case().when(kept, weight).else_(_number(0))
    items = [column(name, "choices") for name in item_names(query)]
    parts: Any = exp.select(*items, named(weighed, "weight")).from_(derived(numbered, "choices"))
    if query.max_items is not None:
        counted = _number(max(longest, query.max_items))
        parts = parts.where(exp.LTE(this=choice.copy(), expression=counted))
    return parts  # type: ignore[no-any-return]  # sqlglot's own classes differ by version


def _weighed(
    select: exp.Select, weights: exp.Expression, size: exp.Expression, longest: int
) -> exp.Select:
    """The select, joined with the weight of a person with so many items."""
    many = exp.GT(this=size, expression=_number(longest))
    limited: Any = exp.case().when(many, _number(longest)).else_(size.copy())
    same = exp.EQ(this=column("items", "weights"), expression=limited)
    return select.join(exp.alias_(weights.copy(), "weights", table=True, quoted=True), on=same)


def _summed(parts: Any, names: Sequence[str]) -> exp.Select:
    items = [column(name, "parts") for name in names]
    total = exp.cast(exp.Sum(this=column("weight", "parts")), exp.DataType.Type.BIGINT)
    return (
        exp.select(*items, named(total, "weighted"), named(exp.Count(this=exp.Star()), "persons"))
        .from_(derived(parts, "parts"))
        .group_by(*(item.copy() for item in items))
    )


def _named_before(name: str) -> exp.Table:
    return exp.table_(exp.to_identifier(name, quoted=True))


def _sizes(pairs: exp.Expression) -> exp.Select:
    """How many items each person has."""
    person = column("person", "pairs")
    return (
        exp.select(person, named(exp.Count(this=exp.Star()), "items"))
        .from_(pairs.copy())
        .group_by(person.copy())
    )


def _joined(
    pairs: exp.Expression, names: Sequence[str], more: Sequence[exp.Expression]
) -> exp.Select:
    same = exp.EQ(this=column("person", "sizes"), expression=column("person", "pairs"))
    return (
        exp.select(*(column(name, "pairs") for name in names), *more)
        .from_(pairs.copy())
        .join(_named_before("sizes"), on=same)
    )


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)
