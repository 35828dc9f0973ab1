"""FROM and its joins: private rows meet rows of the same owner, or public rows, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import OWN, as_source, owner
from topsecret.sources.relations.scope import (
    Expressions,
    Found,
    Scope,
    Source,
    conjuncts,
    same_owner,
    tag_of,
)
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.operand_types import Typed, unified


@dataclass(frozen=True, slots=True)
class Joined:
    """One joined source of a rebuilt FROM clause."""

    source: Source
    how: str
    conditions: tuple[exp.Expression, ...]


class FromClause:
    """Combines sources from left to right; the scope knows the owner of the combined row."""

    def __init__(self, scope: Scope, first: Source, where: Sequence[Any]) -> None:
        self._scope = scope
        self._where = where
        self._first = first
        self._joined: list[Joined] = []
        scope.sources.append(first)
        if first.relation.private:
            scope.own = owner(first.alias)

    def select(self) -> exp.Select:
        """The clause of a SELECT that shows nothing yet."""
        select: Any = exp.Select()
        select.from_(as_source(self._first.relation, self._first.alias), copy=False)
        for one in self._joined:
            clause = as_source(one.source.relation, one.source.alias)
            condition = exp.and_(*one.conditions, copy=False) if one.conditions else None
            if condition is None and one.how != "cross":
                condition = exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1))
            select = select.join(clause, on=condition, join_type=one.how, copy=False)
        return select  # type: ignore[no-any-return]

    def join(self, node: exp.Join, source: Source) -> None:
        """Add a source."""
        scope, mine = self._scope, self._scope.own
        side = self._side(node, mine is not None, source.relation.private)
        equal, tagged = self._using(node, source)
        parts = [] if node.args.get("on") is None else conjuncts(node.args["on"])
        before = list(scope.sources)
        if source.name and any(folded(source.name) == folded(one.name) for one in before):
            raise QueryRefused(
                "join", f"two tables of one FROM are called {source.name!r}; give one another name"
            )
        scope.sources.append(source)
        where = self._where if side == "inner" else ()
        tried = [*parts, *where]
        both = mine is not None and source.relation.private
        # WHERE is read again when all tables are there: a name without its table may then mean
        # the column of a later one, and nothing would be left of the link.
        lasting = [*parts, *(one for one in where if _names_its_tables(one))]
        follows = both and side == "inner" and self._follows_link(source, before, lasting)
        conditions = list(equal)
        if node.args.get("on") is not None:
            conditions.append(Expressions(scope).truth(node.args["on"]))
        if both and mine is not None and not follows:
            if not tagged and not any(_relates(p, scope, before, source) for p in tried):
                raise self._mixes(node, parts)
            conditions.append(same_owner(mine, source.alias))
        if side == "right":
            for one in before:
                one.optional = True
        elif side == "left":
            source.optional = True
        if source.relation.private and (mine is None or side == "right"):
            scope.own = owner(source.alias)
        how = side if conditions or side != "inner" else "cross"
        self._joined.append(Joined(source, how, tuple(conditions)))

    def _follows_link(self, source: Source, before: list[Source], parts: Sequence[Any]) -> bool:
        """Whether child and parent meet by the file's link itself: then they have one owner.

        The child's own join with the owners of its keys would give, for a child's row and a
        parent's row that meet, one row of the parent's owner: the two rows as they are.
        """
        for parent in before:
            if _by_link(source, parent, parts, self._scope):
                _without_owners(source)
                return True
        private = [one for one in before if one.relation.private]
        if len(private) != 1 or not _by_link(private[0], source, parts, self._scope):
            return False
        if self._asks_owner_of(private[0]):
            return False
        _without_owners(private[0])
        self._scope.own = owner(source.alias)
        return True

    def _asks_owner_of(self, source: Source) -> bool:
        """Whether a condition of the joins so far names the owner of this source's rows."""
        conditions = [one for joined in self._joined for one in joined.conditions]
        return any(
            held.name == OWN and held.table == source.alias
            for condition in conditions
            for held in condition.find_all(exp.Column)
        )

    def _side(self, node: exp.Join, mine: bool, other: bool) -> str:
        known = {"this", "side", "kind", "on", "using"}
        kind, side = str(node.args.get("kind") or ""), str(node.args.get("side") or "")
        extra = [name for name, value in node.args.items() if value and name not in known]
        if extra or kind.upper() not in {"", "INNER", "CROSS", "OUTER"} or side.upper() == "FULL":
            raise QueryRefused(
                "join",
                f"the join {quoted(node)} is not one of INNER, CROSS, LEFT and RIGHT; write one "
                "of these with ON",
            )
        # Rows of a public table that nobody matched belong to nobody: they do not count.
        if side.upper() == "LEFT":
            return "inner" if not mine and other else "left"
        if side.upper() == "RIGHT":
            return "inner" if mine and not other else "right"
        return "inner"

    def _using(self, node: exp.Join, source: Source) -> tuple[list[exp.Expression], bool]:
        equal: list[exp.Expression] = []
        tagged = False
        alone = Scope(self._scope.dialect)
        alone.sources.append(source)
        for name in node.args.get("using") or []:
            wanted = exp.column(name.name)
            left, right = self._scope.find(wanted), alone.find(wanted)
            if left is None or right is None:
                raise QueryRefused(
                    "column", f"there is no column {quoted(name)} on both sides; write ON"
                )
            tagged = tagged or (left.column.tag is not None and left.column.tag == right.column.tag)
            parts = [self._typed(one) for one in (left, right)]
            both = unified(parts, self._scope.dialect, True)
            if both is None:
                raise QueryRefused(
                    "join", f"USING ({name.name}) compares values of two kinds; cast one"
                )
            equal.append(exp.EQ(this=both[1][0], expression=both[1][1]))
            right_kept = str(node.args.get("side") or "").upper() == "RIGHT"
            self._scope.merged[folded(name.name)] = source if right_kept else left.source
        return equal, tagged

    def _typed(self, found: Found) -> Typed:
        return Typed(found.column.at(found.source.alias, self._scope.dialect), found.column.sort)

    def _mixes(self, node: exp.Join, parts: Sequence[Any]) -> QueryRefused:
        what = f"on {quoted(parts[0])} " if parts else f"with {quoted(node.this)} "
        return QueryRefused(
            "join",
            f"the join {what}mixes people: rows of two meet. Join by the person, or by the "
            "privacy file's link",
        )


def _by_link(child: Source, parent: Source, parts: Sequence[Any], scope: Scope) -> bool:
    """Whether one of these conditions is the link of the child to this very parent."""
    link = child.relation.linked
    if link is None or parent.table != link.parent or parent.optional or child.optional:
        return False
    wanted = {(id(child), link.column), (id(parent), link.key)}
    return any({(id(f.source), f.column.ident) for f in _equal(p, scope)} == wanted for p in parts)


def _names_its_tables(part: Any) -> bool:
    return all(column.table for column in part.find_all(exp.Column))


def _equal(part: Any, scope: Scope) -> list[Found]:
    """The columns of ``a = b``; nothing for any other condition."""
    part = part.unnest()
    if not isinstance(part, exp.EQ):
        return []
    sides = [part.this.unnest(), part.expression.unnest()]
    if not all(isinstance(s, exp.Column) and not isinstance(s.this, exp.Star) for s in sides):
        return []
    try:
        found = [scope.find(side) for side in sides]
    except QueryRefused:  # it names a source that is joined later
        return []
    return [one for one in found if one is not None]


def _without_owners(child: Source) -> None:
    link = child.relation.linked
    assert link is not None
    child.relation = replace(child.relation, select=link.select, linked=None)


def _relates(part: Any, scope: Scope, before: Sequence[Source], source: Source) -> bool:
    """Whether ``a = b`` compares what identifies the owner on both sides of a join."""
    part = part.unnest()
    if not isinstance(part, exp.EQ):
        return False
    sides = [part.this.unnest(), part.expression.unnest()]
    if not all(isinstance(side, exp.Column) for side in sides):
        return False
    try:
        tags = [tag_of(side, scope) for side in sides]
        found = [scope.find(side) for side in sides]
    except QueryRefused:  # it names a source that is joined later
        return False
    if tags[0] is None or tags[0] != tags[1] or None in found:
        return False
    here = [f.source is source for f in found if f is not None]
    there = [any(f.source is one for one in before) for f in found if f is not None]
    return (here[0] and there[1]) or (here[1] and there[0])
