"""LIMIT over public rows: the same rows whatever their order, because all columns break ties."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from topsecret.sources.relations.caller_list import whole_number
from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import Names, Relation, RelationColumn, as_source
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.statements import column, derived, named

PLACE = "place"
"""The number of a row in its order; columns are called c1, c2, …"""


def limit_of(node: exp.Select) -> int | None:
    """k of LIMIT, TOP or FETCH FIRST."""
    limit = node.args.get("limit")
    if limit is None:
        return None
    wrong = QueryRefused("limit", f"{quoted(limit)} must be a whole number above 0, without ties")
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
            raise wrong
        number = limit.args.get("count")
    else:
        if limit.args.get("limit_options") or limit.args.get("offset") or limit.expressions:
            raise wrong
        number = limit.expression
    k = whole_number(number, "limit")
    if k is None or k < 1:
        raise wrong
    return k


def first_rows(node: exp.Select, relation: Relation, names: Names, dialect: str) -> Relation:
    """The first rows of a public relation by its ORDER BY, then by all of its columns."""
    order, k = node.args.get("order"), limit_of(node)
    if order is None or k is None:
        raise QueryRefused("limit", "LIMIT without ORDER BY takes any rows; add ORDER BY")
    alias, cut = names.alias(), names.alias()
    keys = [
        exp.Ordered(
            this=_shown(one.this, node, relation).at(alias, dialect),
            desc=bool(one.args.get("desc")),
            nulls_first=bool(one.args.get("nulls_first")),
        )
        for one in order.expressions
    ]
    keys += [
        exp.Ordered(this=held.identity(alias, dialect), nulls_first=False)
        for held in relation.columns
    ]
    # Numbered, not cut by LIMIT: DuckDB 2.0 skips parts of a table that it takes for too far back,
    # and with them, where rows were deleted, the first ones.
    place = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=keys))
    shown = [named(held.at(alias, dialect), held.ident) for held in relation.columns]
    numbered: Any = exp.select(*shown, named(place, PLACE))
    numbered.from_(as_source(relation, alias), copy=False)
    kept = [named(held.at(cut, dialect), held.ident) for held in relation.columns]
    select = exp.select(*kept).from_(derived(numbered, cut), copy=False)
    first = exp.LTE(this=column(PLACE, cut), expression=exp.Literal.number(k))
    return Relation(select.where(first, copy=False), relation.columns, private=False)


def _shown(key: Any, node: exp.Select, relation: Relation) -> RelationColumn:
    """The column of the list that an ORDER BY names."""
    plain = key.unnest()
    if isinstance(plain, exp.Column) and plain.table:  # not one that was given the same name
        listed = [one.unalias() for one in node.expressions]
        places = [place for place, one in enumerate(listed) if one == plain]
        if places and len(listed) == len(relation.columns):
            return relation.columns[places[0]]
        raise QueryRefused("limit", f"ORDER BY {quoted(key)} beside LIMIT: put it into the list")
    place = whole_number(plain, "limit")
    if place is not None and 1 <= place <= len(relation.columns):
        return relation.columns[place - 1]
    if isinstance(plain, exp.Column) and not isinstance(plain.this, exp.Star):
        named = [c for c in relation.columns if folded(c.name) == folded(plain.name)]
        if len(named) == 1:
            return named[0]
    raise QueryRefused(
        "limit", f"ORDER BY {quoted(key)} beside LIMIT must be a column of the list; add it"
    )
