"""Views are analysed, not trusted: each of their rows must depend on one person's rows alone.

A view may count all rows, keep the latest, join, sample or cut: then one person more changes what
the rows of others look like, and no count of it is bounded by one. So its definition is read from
the engine and checked. Accepted is what keeps neighbours neighbours whatever the rows are:

- projections and filters that look at one row and never change from run to run or fail, by the
  short list of ``view_expressions``;
- the same below ``UNION [ALL]``, in sub-queries in FROM, in CTEs and in further views; the sides of
  a UNION that read one table must take the same of its columns for the person;
- ``DISTINCT`` with the person among the columns, and ``GROUP BY`` with the person among the keys,
  with COUNT, MIN and MAX: a group then belongs to one person. Equal values of all these columns
  must be identical: which of 0.0 and -0.0 stands for both may depend on the rows of others.

From the tables up, each column carries why it cannot be the person: a column that can is one whose
value all rows share that a row was made of. What no rule names is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from topsecret.errors import DataIndependentFailure, InvalidParameter
from topsecret.sources.sql.expressions import shown
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.stored_definitions import (
    Catalogue,
    Stored,
    is_plain_name,
    name_of,
    parsed_view,
)
from topsecret.sources.sql.view_columns import (
    AGGREGATES,
    Column,
    Columns,
    Sort,
    counts_rows,
    is_aggregate,
    is_identical,
    is_of_group,
    is_of_several,
    is_same,
    is_sorted,
    merged,
    origins_of,
)
from topsecret.sources.sql.view_expressions import Judge

DEEPEST = 50
"""Views upon views."""

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

CLAUSES = {"expressions", "from_", "from", "where", "group", "having", "distinct", "order"}
UNITED = {"this", "expression", "distinct", "order"}
WITH = {"with_", "with"}
NOBODY = "DISTINCT without the person"
SEVERAL = (
    "takes several columns of one table for the person, so that a row counts for each of them (a "
    "privacy file for topsecret.sql says whose it is)"
)
TABLE = {"this", "db", "catalog", "alias", "only"}
"""The parts of a query that are looked at; it may have no others."""


def check_relation(start: Stored, person: str, catalogue: Catalogue, dialect: str) -> None:
    """Raise ``DataIndependentFailure`` unless each row depends on its own person alone."""
    held = _Analysis(catalogue, dialect).stored(start, _Scope(start, start, 0, {}))
    found = [one for one in held if one.name == folded(person)]
    clauses = [one.mixed for one in found if one.mixed]
    if clauses:
        raise _mixes(start, clauses[0])
    if any(is_of_several(one.origins, catalogue.kin) for one in found):
        raise refused(start, "UNION", SEVERAL)
    if start.definition is not None and len(found) != 1:
        raise refused(start, f"its column {person!r}", "is not found, or found twice")


class _Analysis:
    def __init__(self, catalogue: Catalogue, dialect: str) -> None:
        self._catalogue = catalogue
        self._dialect = dialect

    def stored(self, one: Stored, scope: _Scope) -> Columns:
        """Check a table or view that is asked for within this scope; its columns."""
        if one.refused:
            raise refused(scope.start, one.refused, "cannot be looked into")
        if one.definition is None:
            named = [(folded(name), sort) for name, sort in one.columns]
            return tuple(Column(n, sort, "", frozenset({(one.name, n)})) for n, sort in named)
        tree = parsed_view(one, self._dialect)
        if tree is None or scope.depth > DEEPEST:
            raise refused(scope.start, "its definition", "cannot be read")
        return self._query(tree, _Scope(one, scope.start, scope.depth + 1, {}))

    def _query(self, node: Any, scope: _Scope) -> Columns:
        if isinstance(node, exp.Subquery | exp.Paren):
            self._clauses(node, {"this", "alias"}, scope)
            return self._query(node.this, scope)
        if isinstance(node, exp.Union):
            self._clauses(node, UNITED | WITH, scope)
            return self._union(node, self._with(node, scope))
        if isinstance(node, exp.Select):
            self._clauses(node, CLAUSES | WITH, scope)
            return self._select(node, self._with(node, scope))
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
            inner = inner.knowing(folded(cte.alias), (cte.this, inner))
        return inner

    def _clauses(self, node: Any, known: set[str], scope: _Scope) -> None:
        for name, clause in MIXING.items():
            if node.args.get(name):
                raise _mixes(scope.start, clause)
        for name, part in node.args.items():
            if part and name not in known:
                raise refused(scope.start, name.strip("_").upper(), "is not known to keep to rows")

    def _union(self, node: Any, scope: _Scope) -> Columns:
        left, right = self._query(node.left, scope), self._query(node.right, scope)
        if len(left) != len(right):
            raise refused(scope.start, "UNION", "has sides of different columns")
        held: list[Column] = []
        for one, other in zip(left, right, strict=True):
            sort = merged(one.sort, other.sort, self._dialect)
            if sort is None:
                why = f"casts {shown(one.name)}, which may fail on one person's row"
                raise refused(scope.start, "UNION", why)
            origins = one.origins | other.origins
            held.append(Column(one.name, sort, one.mixed or other.mixed, origins))
        for key in _order(node):
            if not isinstance(key, exp.Column | exp.Literal):
                raise refused(scope.start, _clause(key), "is not known to be safe on every row")
        if node.args.get("distinct"):
            self._identical("UNION", held, scope)
        return tuple(held)

    def _identical(self, clause: str, held: Iterable[Column], scope: _Scope) -> None:
        """What is made one by its equality must be identical."""
        for one in held:
            if not is_identical(one.sort) and one.sort != "null":
                why = f"may take values of {shown(one.name)} for one that are not identical"
                raise refused(scope.start, clause, why)

    def _select(self, node: Any, scope: _Scope) -> Columns:
        from_ = node.args.get("from_") or node.args.get("from")
        if from_ is None:
            raise refused(scope.start, _clause(node), "reads no table")
        group, distinct = node.args.get("group"), node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise _mixes(scope.start, "DISTINCT ON")
        having, where = node.args.get("having"), node.args.get("where")
        if group is None and having is not None:
            raise _mixes(scope.start, _clause(having))
        for part in [*node.expressions, *_order(node)]:
            self._row_wise(part, scope, aggregates=group is not None)
        if where is not None:
            self._row_wise(where.this, scope, aggregates=False)
        inner = self._from(from_.this, scope)
        rows = _Rows(inner, from_.this.alias_or_name, self._dialect, scope)
        listed = self._listed(node.expressions, inner, scope)
        keys = None if group is None else self._keys(group, listed, rows, scope)
        if where is not None:
            rows.check(where.this, condition=True)
        if having is not None:
            self._row_wise(having.this, scope, aggregates=True)
            rows.check(having.this, condition=True)
        held = [rows.column(name, one) for name, one in listed]
        for key in _order(node):
            named = {one.name: one.sort for one in held}.get(_name(key))
            known = named if named is not None and isinstance(key, exp.Column) else rows.check(key)
            if not is_sorted(known, self._dialect):
                raise refused(scope.start, f"ORDER BY {_clause(key)}", "may fail on a row")
        if keys is not None:
            clause = f"{_clause(group)} without the person"
            for place, (_, value) in enumerate(listed):
                if not any(is_same(key, value) for key in keys):
                    held[place] = replace(held[place], mixed=clause)
        if distinct is not None:
            self._identical("DISTINCT", held, scope)
            made = zip(held, listed, strict=True)
            held = [o if v.find(exp.Column) else replace(o, mixed=NOBODY) for o, (_, v) in made]
        return tuple(held)

    def _listed(
        self, expressions: Sequence[Any], inner: Columns, scope: _Scope
    ) -> list[tuple[str, Any]]:
        """The names and expressions of a select list, its stars written out."""
        listed: list[tuple[str, Any]] = []
        for one in expressions:
            if not one.is_star:
                listed.append((folded(one.alias_or_name), one.unalias()))
                continue
            star = one.this if isinstance(one, exp.Column) else one
            if any(star.args.get(name) for name in ("rename", "ilike")):
                raise refused(scope.start, _clause(one), "renames columns; name them by AS")
            left_out = {_name(out) for out in star.args.get("except_") or ()}
            put = {folded(new.alias): new.unalias() for new in star.args.get("replace") or ()}
            names = [column.name for column in inner if column.name not in left_out]
            listed += [(name, put.get(name, exp.column(name))) for name in names]
        return listed

    def _keys(
        self, group: Any, listed: Sequence[tuple[str, Any]], rows: _Rows, scope: _Scope
    ) -> list[Any]:
        """The keys of GROUP BY, of which all other values of a group must be made."""
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise _mixes(scope.start, _clause(group))
        keys = []
        for key in group.expressions:
            if isinstance(key, exp.Literal) and not key.is_string:
                key = listed[int(key.this) - 1][1]
            elif isinstance(key, exp.Column) and not rows.has(key):
                key = dict(listed).get(folded(key.name), key)  # by the name in the list
            self._row_wise(key, scope, aggregates=False)
            self._identical(_clause(group), [Column(_clause(key), rows.check(key))], scope)
            keys.append(key)
        for _, part in listed:
            if not is_of_group(part, keys):
                raise refused(scope.start, _clause(part), "is of any row of its group")
        return keys

    def _from(self, node: Any, scope: _Scope) -> Columns:
        alias = node.args.get("alias")
        if alias is not None and alias.columns:
            raise refused(scope.start, _clause(node), "renames columns; name them by AS")
        if isinstance(node, exp.Subquery):
            return self._query(node, scope)
        if not isinstance(node, exp.Table) or not is_plain_name(node):
            raise refused(scope.start, _clause(node), "is no table of the database")
        if any(part for name, part in node.args.items() if name not in TABLE):
            raise _mixes(scope.start, _clause(node))
        parts = name_of(node)
        known = scope.known.get(folded(parts[0])) if len(parts) == 1 else None
        if known is not None:
            return self._query(known[0], known[1])
        found = self._catalogue.find(parts, scope.view)
        if found is None:
            raise refused(scope.start, ".".join(parts), "is no table of the database")
        return self.stored(found, scope)

    def _row_wise(self, expression: Any, scope: _Scope, *, aggregates: bool) -> None:
        for node in expression.walk():
            if isinstance(node, exp.Query | exp.Subquery | exp.Exists | exp.Window):
                raise _mixes(scope.start, _clause(node))
            known = aggregates and (isinstance(node, AGGREGATES) or counts_rows(node))
            if is_aggregate(node) and not known:
                raise _mixes(scope.start, _clause(node))


class _Rows:
    """The rows that a select reads: what expressions over their columns hold."""

    def __init__(self, inner: Columns, alias: str, dialect: str, scope: _Scope) -> None:
        self._columns: dict[str, Column] = {}
        for one in inner:
            twice = replace(one, sort="other", mixed="a name of two columns")
            self._columns[one.name] = twice if one.name in self._columns else one
        sorts = {name: one.sort for name, one in self._columns.items()}
        self._judge = Judge(sorts, dialect)
        self._alias = folded(alias)
        self._scope = scope

    def has(self, column: exp.Column) -> bool:
        """Whether the table has a column of this name."""
        return folded(column.name) in self._columns

    def check(self, node: Any, *, condition: bool = False) -> Sort:
        """What an expression holds; refused if it may fail on a row."""
        for column in node.find_all(exp.Column):
            of_another = column.table and folded(column.table) != self._alias
            if of_another or column.args.get("db"):  # a part of a value
                raise refused(self._scope.start, _clause(column), "is no column of its table")
        try:
            if not condition:
                return self._judge.sort(node)
            self._judge.truth(node)
            return "boolean"
        except InvalidParameter as error:
            why = f"may fail on one person's row ({error})"
            if isinstance(node, exp.Column):
                why = "is no column of its table"
        raise refused(self._scope.start, _clause(node), why)

    def column(self, name: str, node: Any) -> Column:
        """What an expression is under a name."""
        return Column(name, self.check(node), self.mixed(node), origins_of(node, self._columns))

    def mixed(self, node: Any) -> str:
        """Why an expression cannot be the person: for that of a column that it is made of."""
        used = [self._columns[folded(one.name)].mixed for one in node.find_all(exp.Column)]
        return next((clause for clause in used if clause), "")


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a query stands: in which view, asked for by whom, with which CTEs in sight."""

    view: Stored
    start: Stored
    depth: int
    known: Mapping[str, tuple[Any, _Scope]]

    def knowing(self, name: str, cte: tuple[Any, _Scope]) -> _Scope:
        return replace(self, known={**self.known, name: cte})


def _order(node: Any) -> list[Any]:
    """What the rows are sorted by, which changes none but may fail."""
    order = node.args.get("order")
    return [] if order is None else [one.this for one in order.expressions]


def _name(node: Any) -> str:
    return folded(str(node.name))


def _clause(node: Any) -> str:
    return shown(node.sql())


def _mixes(start: Stored, clause: str) -> DataIndependentFailure:
    return refused(start, clause, "makes a row depend on other rows")


def refused(start: Stored, clause: str, why: str) -> DataIndependentFailure:
    """Our error, which names the clause."""
    return DataIndependentFailure(
        f"{'.'.join(start.name)} may mix people: {clause} {why}; pass its table with where= and "
        "an item= expression, or the query to topsecret.sql, or pass trust_view=True if you know "
        "that each row depends on its own person alone and none can fail"
    )
