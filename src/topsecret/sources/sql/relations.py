"""Views are analysed, not believed: each of their rows must depend on one person's rows alone.

A view may count all rows, keep the latest, join, sample or cut: then one person more changes what
the rows of others look like, and no count of it is bounded by one. So its definition is read from
the engine and checked. Accepted is what keeps neighbours neighbours whatever the rows are:

- projections and filters that look at one row and never change from run to run or fail;
- the same below ``UNION [ALL]``, in sub-queries in FROM, in CTEs and in further views;
- ``DISTINCT`` with the person among the columns, and ``GROUP BY`` with the person among the keys,
  with COUNT, MIN and MAX: a group then belongs to one person.

Everything else is refused with the clause that mixes. What no rule names is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from topsecret.errors import DataIndependentFailure
from topsecret.sources.sql.expressions import ALLOWED, shown
from topsecret.sources.sql.view_expressions import AsWritten, Sorts, judged, merged, replaced

Name = tuple[str, ...]

DEEPEST = 50
"""Views upon views."""

# What expressions may hold beside those of filters. All keep to their row and cannot fail.
ROW_WISE: tuple[type[exp.Expression], ...] = (
    *ALLOWED,
    exp.Alias,
    exp.Star,
    exp.Concat,
    exp.DPipe,
    exp.Collate,
    exp.Nullif,
    exp.Array,
    exp.Any,
    exp.Interval,
)
AGGREGATES = (exp.Count, exp.Min, exp.Max)
"""Of one person's rows, in any order: the same value."""

TEXTS = {exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR}
MIXING = {
    "limit": "LIMIT",
    "offset": "OFFSET",
    "sample": "SAMPLE",
    "qualify": "QUALIFY",
    "joins": "JOIN",
    "laterals": "LATERAL",
    "pivots": "PIVOT",
    "connect": "CONNECT BY",
    "match": "MATCH_RECOGNIZE",
    "windows": "WINDOW",
}
"""Clauses where a row's fate depends on other rows."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a database's catalogue says of a name."""

    name: Name
    definition: str | exp.Expression | None = None
    """The SELECT of a view; None for a table."""
    refused: str = ""
    """Why it cannot be analysed, such as "a foreign table"; empty for tables and views."""
    identical: frozenset[str] = frozenset()
    """Columns of a table, in small letters, whose equal values are identical: not of a collation
    that takes ``Ann`` for ``ann``, not 1.0 and 1.00. Grouping by others would merge persons."""
    sorts: Sorts | None = None
    """What the columns hold, of engines that cast on their own and fail; else None."""


class Catalogue(Protocol):
    """Where names are looked up: the schema of a database, and no row."""

    def find(self, name: Name, inside: Stored | None) -> Stored | None:
        """The table or view that this name means, perhaps within the definition of a view."""
        ...


def check_relation(start: Stored, person: str, catalogue: Catalogue, dialect: str) -> None:
    """Raise ``DataIndependentFailure`` unless each row depends on its own person alone."""
    _Analysis(catalogue, dialect).stored(start, person, _Scope(start, start, 0, {}, False))


def base_tables(start: Stored, catalogue: Catalogue, dialect: str) -> frozenset[Name]:
    """The tables that a relation reads, through however many views."""
    found: set[Name] = set()
    waiting, seen = [start], {start.name}
    while waiting:
        one = waiting.pop()
        if one.definition is None:
            found.add(one.name)
            continue
        tree = _parsed(one, dialect)
        for node in tree.find_all(exp.Table) if tree is not None else ():
            stored = catalogue.find(_parts(node), one) if _is_name(node) else None
            if stored is not None and stored.name not in seen:
                seen.add(stored.name)
                waiting.append(stored)
    return frozenset(found)


class _Analysis:
    def __init__(self, catalogue: Catalogue, dialect: str) -> None:
        self._catalogue = catalogue
        self._dialect = dialect

    def stored(self, one: Stored, person: str | None, scope: _Scope) -> Sorts | None:
        """Check a table or view that is asked for within this scope; what its columns hold."""
        if one.refused:
            raise refused(scope.start, one.refused, "cannot be looked into")
        if one.definition is None:
            if scope.grouped and (person is None or person.casefold() not in one.identical):
                raise _mixes(
                    scope.start, "DISTINCT or GROUP BY, which may take two persons for one,"
                )
            return one.sorts
        tree = _parsed(one, self._dialect)
        if tree is None or scope.depth > DEEPEST:
            raise refused(scope.start, "its definition", "cannot be read")
        inner = _Scope(one, scope.start, scope.depth + 1, {}, scope.grouped)
        return self._query(tree, person, inner)

    def _query(self, node: Any, person: str | None, scope: _Scope) -> Sorts | None:
        if isinstance(node, exp.Subquery | exp.Paren):
            self._clauses(node, scope)
            return self._query(node.this, person, scope)
        if isinstance(node, exp.Union):
            scope = self._with(node, scope)
            self._clauses(node, scope)
            return self._union(node, person, scope)
        if isinstance(node, exp.Select):
            return self._select(node, person, self._with(node, scope))
        raise refused(scope.start, _clause(node), "is not a SELECT of one table")

    def _with(self, node: Any, scope: _Scope) -> _Scope:
        with_ = node.args.get("with_") or node.args.get("with")
        if with_ is None:
            return scope
        if with_.args.get("recursive"):
            raise refused(scope.start, "WITH RECURSIVE", "reads rows again and again")
        inner = scope
        for cte in with_.expressions:  # each sees those before it
            if cte.args["alias"].columns:
                raise refused(scope.start, _clause(cte), "renames columns; name them by AS")
            inner = inner.knowing(cte.alias.casefold(), (cte.this, inner))
        return inner

    def _clauses(self, node: Any, scope: _Scope) -> None:
        for name, clause in MIXING.items():
            if node.args.get(name):
                raise _mixes(scope.start, clause)

    def _union(self, node: Any, person: str | None, scope: _Scope) -> Sorts | None:
        if node.args.get("by_name") or node.args.get("on"):
            raise refused(scope.start, "UNION BY NAME", "is not known to keep rows apart")
        names = [name.casefold() for name in node.left.named_selects]
        theirs: list[str] = list(node.right.named_selects)
        other: str | None = None
        if person is not None and person.casefold() in names and "*" not in (*names, *theirs):
            place = names.index(person.casefold())
            other = theirs[place] if place < len(theirs) else None
        elif names == [name.casefold() for name in theirs]:  # stars, of tables alike
            other = person
        if node.args.get("distinct") and (person is None or other is None):
            raise refused(scope.start, "UNION", "drops rows; write UNION ALL")
        scope = scope.grouping(bool(node.args.get("distinct")))
        left, right = self._query(node.left, person, scope), self._query(node.right, other, scope)
        return None if left is None or right is None else merged(left, right)

    def _select(self, node: Any, person: str | None, scope: _Scope) -> Sorts | None:
        self._clauses(node, scope)
        from_ = node.args.get("from_") or node.args.get("from")
        if from_ is None:
            raise refused(scope.start, _clause(node), "reads no table")
        expression = _projection(node, person)
        group = node.args.get("group")
        distinct = node.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                raise _mixes(scope.start, "DISTINCT ON")
            if expression is None:
                raise _mixes(scope.start, "DISTINCT without the person")
        if group is not None:
            self._group(node, group, expression, scope)
        elif node.args.get("having"):
            raise _mixes(scope.start, _clause(node.args["having"]))
        where = node.args.get("where")
        for part in node.expressions:
            self._row_wise(part, scope, aggregates=group is not None)
        if where is not None:
            self._row_wise(where.this, scope, aggregates=False)
        having = node.args.get("having")
        if having is not None:
            self._row_wise(having.this, scope, aggregates=True)
        inner = expression.name if isinstance(expression, exp.Column) else None
        inner_scope = scope.grouping(group is not None or distinct is not None)
        sorts = self._from(from_.this, inner, inner_scope)
        if sorts is None:
            return None
        for part in [*node.expressions, *(group.expressions if group is not None else [])]:
            for one in replaced(part) if part.is_star else [part]:
                self._total(one.unalias(), sorts, scope, condition=False)
        for clause in (where, having):
            if clause is not None:
                self._total(clause.this, sorts, scope, condition=True)
        return AsWritten(sorts).output(node.expressions)

    def _total(self, node: Any, sorts: Sorts, scope: _Scope, *, condition: bool) -> None:
        why = judged(node, sorts, condition=condition)
        if why:
            raise refused(scope.start, _clause(node), f"may fail on one person's row ({why})")

    def _group(
        self, node: Any, group: Any, expression: exp.Expression | None, scope: _Scope
    ) -> None:
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise _mixes(scope.start, _clause(group))
        keys = [
            node.expressions[int(key.this) - 1].unalias()
            if isinstance(key, exp.Literal) and not key.is_string
            else key
            for key in group.expressions
        ]
        for key in keys:
            self._row_wise(key, scope, aggregates=False)
        if expression is None or not any(_same(key, expression) for key in keys):
            raise _mixes(scope.start, f"{_clause(group)} without the person")
        for part in node.expressions:
            if not _is_of_group(part.unalias(), keys):
                raise refused(scope.start, _clause(part), "is of any row of its group")

    def _from(self, node: Any, person: str | None, scope: _Scope) -> Sorts | None:
        if isinstance(node, exp.Subquery):
            self._clauses(node, scope)
            alias = node.args.get("alias")
            if alias is not None and alias.columns:
                raise refused(scope.start, _clause(node), "renames columns; name them by AS")
            return self._query(node.this, person, scope)
        if not isinstance(node, exp.Table) or not _is_name(node):
            raise refused(scope.start, _clause(node), "is no table of the database")
        if any(node.args.get(name) for name in ("joins", "laterals", "pivots", "sample", "when")):
            raise _mixes(scope.start, _clause(node))
        alias = node.args.get("alias")
        if alias is not None and alias.columns:
            raise refused(scope.start, _clause(node), "renames columns; name them by AS")
        parts = _parts(node)
        known = scope.known.get(parts[0].casefold()) if len(parts) == 1 else None
        if known is not None:
            return self._query(known[0], person, known[1].grouping(scope.grouped))
        found = self._catalogue.find(parts, scope.view)
        if found is None:
            raise refused(scope.start, ".".join(parts), "is no table of the database")
        return self.stored(found, person, scope)

    def _row_wise(self, expression: Any, scope: _Scope, *, aggregates: bool) -> None:
        for node in expression.walk():
            if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
                raise _mixes(scope.start, _clause(node))
            if isinstance(node, exp.Window):
                raise _mixes(scope.start, _clause(node))
            if _is_aggregate(node):
                if aggregates and (isinstance(node, AGGREGATES) or _counts_rows(node)):
                    continue
                raise _mixes(scope.start, _clause(node))
            if aggregates and isinstance(node, exp.Distinct):
                continue  # COUNT(DISTINCT …)
            if not isinstance(node, ROW_WISE):
                raise refused(
                    scope.start, _clause(node), "is not known to keep to one row and not to fail"
                )
            if isinstance(node, exp.Cast) and not _is_total(node):
                raise refused(scope.start, _clause(node), "may fail on one person's row")


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a query stands: in which view, asked for by whom, with which CTEs in sight."""

    view: Stored
    start: Stored
    depth: int
    known: Mapping[str, tuple[Any, _Scope]]
    grouped: bool
    """Whether rows of equal persons are made one somewhere above."""

    def knowing(self, name: str, cte: tuple[Any, _Scope]) -> _Scope:
        return replace(self, known={**self.known, name: cte})

    def grouping(self, also: bool) -> _Scope:
        return replace(self, grouped=self.grouped or also)


def _parsed(one: Stored, dialect: str) -> Any:
    """The SELECT of a view, also out of a CREATE VIEW; None if it cannot be read."""
    tree: Any = one.definition
    if isinstance(tree, str):
        try:
            tree = sqlglot.parse_one(tree, read=dialect)
        except (SqlglotError, RecursionError):
            return None
    if isinstance(tree, exp.Create):
        # CREATE VIEW v (a, b) renames columns: then nobody knows which one is the person's.
        tree = tree.expression if isinstance(tree.this, exp.Table) else None
    return tree if isinstance(tree, exp.Query) else None


def _is_name(node: exp.Table) -> bool:
    return all(isinstance(part, exp.Identifier) for part in node.parts) and bool(node.parts)


def _parts(node: exp.Table) -> Name:
    return tuple(part.name for part in node.parts)


def _projection(node: Any, person: str | None) -> exp.Expression | None:
    """What the person's column is, in terms of the table that the select reads."""
    if person is None:
        return None
    for one in node.expressions:
        if one.alias_or_name.casefold() == person.casefold():
            return one.unalias()  # type: ignore[no-any-return]
    stars = [one for one in node.expressions if one.is_star]
    return exp.column(person) if stars else None


def _same(one: exp.Expression, other: exp.Expression) -> bool:
    """Whether both are one column, however qualified, or the same expression."""
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        return one.name.casefold() == other.name.casefold()
    return one == other


def _is_aggregate(node: exp.Expression) -> bool:
    return isinstance(node, exp.AggFunc) or _counts_rows(node)


def _counts_rows(node: exp.Expression) -> bool:
    """DuckDB's own name for COUNT(*)."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "COUNT_STAR"


def _is_of_group(part: exp.Expression, keys: Sequence[exp.Expression]) -> bool:
    """Whether a value is the same for a whole group: of its keys, or an aggregate."""
    if _is_aggregate(part) or any(_same(key, part) for key in keys):
        return True
    if isinstance(part, exp.Column | exp.Star):
        return False
    return all(_is_of_group(child, keys) for child in part.iter_expressions())


def _is_total(cast: exp.Cast) -> bool:
    if isinstance(cast, exp.TryCast) or cast.to.this in TEXTS:
        return True
    return isinstance(cast.this.unnest(), exp.Literal | exp.Boolean | exp.Null | exp.Array)


def _clause(node: Any) -> str:
    return shown(node.sql())


def _mixes(start: Stored, clause: str) -> DataIndependentFailure:
    return refused(start, clause, "makes a row depend on other rows")


def refused(start: Stored, clause: str, why: str) -> DataIndependentFailure:
    """Our error, which names the clause."""
    return DataIndependentFailure(
        f"{'.'.join(start.name)} may mix persons: {clause} {why}; pass its table and use where=, "
        "or pass trust_view=True if you know that each row depends on its own person alone"
    )
