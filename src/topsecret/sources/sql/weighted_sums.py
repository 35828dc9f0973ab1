"""The sum of weights per item: one statement, rendered for an engine's dialect.

A person with n distinct items adds the n-th weight of a public table to each of them. Who has more
items than the table is long keeps those that come first by the keyed hash of the cap, then by the
item: a function of their own pairs and the salt. The hash is computed for these persons alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from topsecret.sources.source import CountQuery, Schema
from topsecret.sources.sql.statements import choice_order, column, derived, item_names, named


def weighted_sums(
    pairs: exp.Expression,
    weights: exp.Expression,
    longest: int,
    query: CountQuery,
    schema: Schema,
    dialect: str,
) -> exp.Select:
    """Every item with its sum of weights and its number of persons: (item, …, weighted, persons).

    ``pairs`` is a relation of the distinct pairs (item, …, person), ``weights`` one of
    (items, weight) for 1 to ``longest`` items. Persons are counted after the cut to
    ``query.max_items``, which is never below ``longest``, or before any cut without one. So an item
    may have persons and a sum of 0: none of its pairs is among the ``longest`` of its person. Its
    sum was not observed, its persons were.
    """
    names = item_names(query)
    # A table is read where it is needed: engines would copy one that is given another name in WITH.
    kept_pairs = pairs if isinstance(pairs, exp.Table) else _named_before("pairs")
    everybody = exp.alias_(kept_pairs.copy(), "pairs", table=True, quoted=True)
    sizes = _sizes(everybody)
    few = exp.LTE(this=column("items", "sizes"), expression=_number(longest))
    light = _joined(everybody, names, [named(column("weight", "sizes"), "weight")]).where(few)
    many = exp.GT(this=column("items", "sizes"), expression=_number(longest))
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column("person", "pairs")],
        order=exp.Order(expressions=choice_order(query, schema, dialect)),
    )
    shown = [column("weight", "sizes"), named(number, "choice")]
    numbered = _joined(everybody, names, shown).where(many)
    kept = exp.LTE(this=column("choice", "choices"), expression=_number(longest))
    weight: Any = exp.case().when(kept.copy(), column("weight", "choices")).else_(_number(0))
    heavy: Any = exp.select(
        *(column(name, "choices") for name in names), named(weight, "weight")
    ).from_(derived(numbered, "choices"))
    if query.max_items is not None:
        counted = _number(max(longest, query.max_items))
        heavy = heavy.where(exp.LTE(this=column("choice", "choices"), expression=counted))
    everything: Any = exp.union(light, heavy, distinct=False)
    items = [column(name, "parts") for name in names]
    total = exp.cast(exp.Sum(this=column("weight", "parts")), exp.DataType.Type.BIGINT)
    summed = (
        exp.select(*items, named(total, "weighted"), named(exp.Count(this=exp.Star()), "persons"))
        .from_(derived(everything, "parts"))
        .group_by(*(item.copy() for item in items))
    )
    weighted = exp.select(
        column("person", "counted"), column("items", "counted"), column("weight", "weights")
    ).from_(derived(sizes, "counted"))
    limited: Any = exp.case().when(
        exp.GT(this=column("items", "counted"), expression=_number(longest)), _number(longest)
    )
    same = exp.EQ(
        this=column("items", "weights"), expression=limited.else_(column("items", "counted"))
    )
    weighted = weighted.join(
        exp.alias_(weights.copy(), "weights", table=True, quoted=True), on=same
    )
    # Both are read twice: where no table of them was made, the statement names them.
    if kept_pairs is not pairs:
        columns = [column(name, "kept_pairs") for name in (*names, "person")]
        source = exp.alias_(pairs.copy(), "kept_pairs", table=True, quoted=True)
        summed = summed.with_(
            exp.to_identifier("pairs", quoted=True), as_=exp.select(*columns).from_(source)
        )
    return summed.with_(exp.to_identifier("sizes", quoted=True), as_=weighted)


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
