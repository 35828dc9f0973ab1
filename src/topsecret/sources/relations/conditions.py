"""Conditions of WHERE: expressions, and sub-queries that ask about the owner's other rows.

``x IN (query)`` becomes EXISTS with the owner's equality added; ``x NOT IN (query)`` becomes NOT
EXISTS with its NULL cases, so that it holds exactly where SQL's own does. Both stand only where a
condition that is not true and one that is unknown mean the same: under AND and OR, or negated
directly.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from sqlglot import exp

from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.scope import (
    Expressions,
    Scope,
    columns_read,
    same_owner,
    tag_of,
)
from topsecret.sources.sql.operand_types import Typed, unified


class Conditions:
    """Rebuilds conditions over one scope."""

    def __init__(self, scope: Scope, expressions: Expressions, subquery: Any) -> None:
        self._scope = scope
        self._expressions = expressions
        self._subquery = subquery
        """Opens a sub-query: (query, scope) → (source clause, its Source, its scope)."""

    def truth(self, node: Any) -> exp.Expression:
        """The condition for the engine."""
        return self._truth(node, _with_query(node))

    def _truth(self, node: Any, asking: set[int]) -> exp.Expression:
        plain = node.unnest()
        if isinstance(plain, exp.And | exp.Or) and id(plain) in asking:
            left, right = self._truth(plain.this, asking), self._truth(plain.expression, asking)
            return exp.paren(type(plain)(this=left, expression=right), copy=False)
        negated = isinstance(plain, exp.Not)
        inner = plain.this.unnest() if negated else plain
        if isinstance(inner, exp.Exists):
            found = self._exists(inner)
        elif isinstance(inner, exp.In) and inner.args.get("query") is not None:
            found = self._in(inner, negated)
        else:
            return self._expressions.truth(node)
        return exp.not_(found, copy=False) if negated else found

    def _exists(self, node: exp.Exists) -> exp.Expression:
        opened = self._subquery.open(_query(node.this), self._scope)
        inner_scope, select, where = opened.scope, opened.select, opened.where
        if self._needs_owner(inner_scope, node) and not any(
            self._same_tags(part, inner_scope) for part in where
        ):
            raise self._unrelated(node)
        return exp.Exists(this=self._with_owner(select, inner_scope))

    def _in(self, node: exp.In, negated: bool) -> exp.Expression:
        extra = [k for k, v in node.args.items() if v and k not in {"this", "query"}]
        if extra:
            raise QueryRefused("subquery", f"{quoted(node)} is not supported; write IN (SELECT …)")
        relation = self._subquery.whole(_query(node.args["query"]), self._scope)
        if len(relation.columns) != 1:
            raise QueryRefused(
                "subquery", f"the sub-query of {quoted(node)} must give one column; select one"
            )
        (held,) = relation.columns
        source = self._subquery.source(relation)
        left = self._expressions.typed(node.this)
        if relation.private:
            if self._scope.owner_here() is None:
                raise self._public_asks(node)
            tag = tag_of(node.this, self._scope)
            if tag is None or tag != held.tag:
                raise self._unrelated(node)
        right = Typed(held.at(source.alias, self._scope.dialect), held.sort)
        both = unified([left, right], self._scope.dialect, True)
        if both is None:
            raise QueryRefused(
                "expression", f"{quoted(node)} compares values of two kinds; cast one"
            )
        _, (a, b) = both
        test: exp.Expression = exp.EQ(this=b, expression=a)
        if negated:
            unknown = [exp.Is(this=side.copy(), expression=exp.null()) for side in (a, b)]
            test = exp.paren(
                reduce(lambda x, y: exp.Or(this=x, expression=y), [test, *unknown]), copy=False
            )
        select: Any = exp.select(exp.Literal.number(1))
        select.from_(self._subquery.clause(source), copy=False).where(test, copy=False)
        if relation.private:
            own = self._scope.owner_here()
            assert own is not None
            select.where(same_owner(own, source.alias), copy=False)
        return exp.Exists(this=select)

    def _needs_owner(self, inner: Scope, node: Any) -> bool:
        if inner.own is None:
            return False
        if self._scope.owner_here() is None:
            raise self._public_asks(node)
        return True

    def _with_owner(self, select: exp.Select, inner: Scope) -> exp.Select:
        if inner.own is None:
            return select
        own = self._scope.owner_here()
        assert own is not None
        return select.where(exp.EQ(this=own.copy(), expression=inner.own.copy()), copy=False)

    def _same_tags(self, part: Any, inner: Scope) -> bool:
        """Whether ``a = b`` compares what identifies the owner here and there."""
        if not isinstance(part, exp.EQ):
            return False
        tags = tag_of(part.this, inner), tag_of(part.expression, inner)
        if tags[0] is None or tags[0] != tags[1]:
            return False
        inside = [_is_inside(side, inner) for side in (part.this, part.expression)]
        return inside[0] != inside[1]

    def _unrelated(self, node: Any) -> QueryRefused:
        return QueryRefused(
            "subquery",
            f"{quoted(node)} asks about other people's rows; compare the person on both sides",
        )

    def _public_asks(self, node: Any) -> QueryRefused:
        return QueryRefused(
            "subquery",
            f"{quoted(node)} lets people decide which rows of a public table count; join their "
            "table in FROM",
        )


def _is_inside(node: Any, inner: Scope) -> bool:
    found = next(iter(columns_read(node, inner)), None)
    return found is not None and any(found.source is s for s in inner.sources)


def _query(node: Any) -> Any:
    return node.this if isinstance(node, exp.Subquery) else node


def _with_query(node: Any) -> set[int]:
    """The parts of a condition, by identity, that a sub-query stands in."""
    found: set[int] = set()
    for one in node.find_all(exp.Query, exp.Exists):
        while one is not None and id(one) not in found:
            found.add(id(one))
            one = one.parent if one is not node else None
    return found
