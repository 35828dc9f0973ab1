"""The list of a SELECT as its caller wrote it: what is shown, what is grouped by, what is meant."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import RelationColumn, Tag
from topsecret.sources.relations.scope import Scope, names_person, tag_of
from topsecret.sources.sql.identifier_case import folded

MOST_DIGITS = 18
"""Of a whole number in a query's text that is read as one: Python would make one of 10⁹ digits."""

AGGREGATES = (exp.AggFunc, exp.Filter)


def whole_number(node: Any, reason: str) -> int | None:
    """The whole number that a query has here, or None; one that is too long is refused."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdecimal():
        return None
    if len(node.this) > MOST_DIGITS:
        raise QueryRefused(
            reason, f"{quoted(node)} has more than {MOST_DIGITS} digits; write a smaller number"
        )
    return int(node.this)


class CallerList:
    """The expressions of a SELECT, over the sources of its scope."""

    def __init__(self, node: exp.Select, scope: Scope) -> None:
        self._node = node
        self.scope = scope
        self.shown = self._expanded()
        """(name, expression), stars written out."""

    def _expanded(self) -> list[tuple[str, Any]]:
        shown: list[tuple[str, Any]] = []
        for one in self._node.expressions:
            if isinstance(one, exp.Star) or (
                isinstance(one, exp.Column) and isinstance(one.this, exp.Star)
            ):
                star = one.this if isinstance(one, exp.Column) else one
                if any(star.args.get(k) for k in star.args):
                    raise QueryRefused(
                        "expression", f"{quoted(one)} is not supported; list columns"
                    )
                table = one.table if isinstance(one, exp.Column) else ""
                for found in self.scope.stars(table):
                    node = exp.column(found.column.name, found.source.name or None, quoted=True)
                    shown.append((found.column.name, node))
            elif isinstance(one, exp.Alias):
                shown.append((one.alias, one.this))
            else:
                shown.append((one.name if isinstance(one, exp.Column) else "", one))
        return shown

    def keys(self) -> list[Any]:
        """What is grouped by: places and names of the list replaced by what they mean."""
        group = self._node.args.get("group")
        if group is None:
            return []
        sets = (exp.Rollup, exp.Cube, exp.GroupingSets)
        more = any(value for name, value in group.args.items() if name != "expressions")
        if more or any(isinstance(key, sets) for key in group.expressions):
            raise QueryRefused("group-sets", f"{quoted(group)}: list the columns to group by")
        return [self._key(key) for key in group.expressions]

    def _key(self, key: Any) -> Any:
        plain = key.unnest()
        if isinstance(plain, exp.Literal) and not plain.is_string:
            written = str(plain.this)
            place = int(written) if written.isdecimal() and len(written) <= MOST_DIGITS else 0
            if not 1 <= place <= len(self.shown):
                raise QueryRefused(
                    "group", f"GROUP BY {quoted(plain)} names no column of the list; write its name"
                )
            return self.shown[place - 1][1]
        if isinstance(plain, exp.Column) and not plain.table:
            try:
                self.scope.find(plain)
            except QueryRefused:
                aliased = [n for name, n in self.shown if folded(name) == folded(plain.name)]
                if len(aliased) == 1:
                    return aliased[0]
                raise
        return key

    def aggregates(self, node: Any) -> list[Any]:
        """The aggregates of an expression, those of a window's keys included."""
        if isinstance(node, exp.Window):
            inside = [*(node.args.get("partition_by") or []), node.args.get("order")]
            return [one for part in inside if part is not None for one in self.aggregates(part)]
        if isinstance(node, AGGREGATES):
            return [node]
        if not isinstance(node, exp.Expression):
            return []
        return [one for child in node.iter_expressions() for one in self.aggregates(child)]

    def canonical(self, node: Any) -> str:
        """The expression's text with each column replaced by the one that it means."""

        def replaced(one: Any) -> Any:
            if isinstance(one, exp.Column) and not isinstance(one.this, exp.Star):
                found = self.scope.find(one)
                if found is None:
                    return exp.column("own", "own")
                return exp.column(found.column.ident, found.source.alias)
            return one

        text: str = node.unnest().copy().transform(replaced).sql()
        return text

    def described(self, node: Any, ident: str, sort: str, name: str = "") -> RelationColumn:
        """The column that an expression makes."""
        plain = node.unnest()
        tag: Tag | None = None
        origin = None
        if isinstance(plain, exp.Column):
            tag = tag_of(plain, self.scope)
            found = self.scope.find(plain)
            if found is not None and not found.source.optional:
                origin = found.column.origin
        person = self._names_person(node)
        return RelationColumn(name, ident, sort, tag, person, origin)

    def _names_person(self, node: Any) -> bool:
        """Counts name nobody; everything else made from a person's column does."""
        if isinstance(node, exp.Count | exp.Window):
            return False
        if isinstance(node, exp.Column):
            return names_person(node, self.scope)
        if not isinstance(node, exp.Expression):
            return False
        return any(self._names_person(child) for child in node.iter_expressions())
