"""Queries rebuilt with their owners: SELECT, WITH, set operations, views.

*Claim.* For every relation R that is accepted, every database D and every person p: R of D without
p's rows is R of D without the rows that p owns, as bags. So one person more or less changes their
own rows of R and no others. docs/proofs/sql.md proves it operator by operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from topsecret.sources.relations.catalogue import Catalogue, TableEntry
from topsecret.sources.relations.conditions import Conditions
from topsecret.sources.relations.from_clause import FromClause
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.public_rows import first_rows
from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import (
    KEYS,
    OWN,
    PERSON,
    Names,
    Relation,
    RelationColumn,
    as_source,
    owner,
)
from topsecret.sources.relations.scope import Expressions, Scope, Source, conjuncts
from topsecret.sources.relations.select_list import SelectList
from topsecret.sources.relations.tables import Tables
from topsecret.sources.sql import loaded_dialects  # noqa: F401
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.statements import named

LONGEST = 20_000
"""Characters of a query."""

MOST_RELATIONS = 200
"""Relations of a rebuilt query: common table expressions are written where they are used."""

SELECT_PARTS = {
    *("expressions", "from_", "from", "joins", "where", "group", "having"),
    *("qualify", "distinct", "order", "limit", "with_", "with"),
}
LIMITED = (
    "LIMIT in a sub-query or view mixes people: one person's rows push another's out. Write "
    "ROW_NUMBER() OVER (PARTITION BY person …) <= n"
)
CTES = Mapping[str, tuple[Any, Any]]
"""Common table expressions by name, each with those that it can see."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A SELECT whose FROM and WHERE are rebuilt.

    Parameters: ``scope``: the tables that it reads, by name; ``select``: the statement.
    """

    scope: Scope
    select: exp.Select
    where: tuple[Any, ...]
    """The caller's conditions, of which all must hold."""


class Rebuilder:
    """Rebuilds queries over one database and its privacy file."""

    def __init__(self, file: PrivacyFile, catalogue: Catalogue) -> None:
        self.dialect = catalogue.dialect
        self.names = Names()
        self._catalogue = catalogue
        self._tables = Tables(file, catalogue, self.names)
        self._relations = 0
        self._views: tuple[str, ...] = ()
        self._read: dict[str, None] = {}

    @property
    def owner_kind(self) -> str:
        """What the hidden column holds."""
        return "integer" if self._tables.whole_numbers() else "text"

    @property
    def shared_rows(self) -> bool:
        """Whether a key that is not unique was followed: its rows may belong to several people."""
        return self._tables.shared_rows

    @property
    def tables_read(self) -> tuple[str, ...]:
        """The tables and views that were named, in order."""
        return tuple(self._read)

    def relation(self, node: Any, ctes: CTES, outer: Scope | None = None) -> Relation:
        """The relation of a query that stands inside another."""
        self._relations += 1
        if self._relations > MOST_RELATIONS:
            raise QueryRefused(
                "text", f"the query has more than {MOST_RELATIONS} parts; shorten it"
            )
        if isinstance(node, exp.Subquery):
            _only(node, {"this"}, "subquery")
            return self.relation(node.this, ctes, outer)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer)
        raise QueryRefused("rows", f"{quoted(node)} is not a SELECT; write one")

    def open(self, node: exp.Select, ctes: CTES, outer: Scope | None = None) -> Opened:
        """FROM and WHERE of a SELECT."""
        scope = Scope(self.dialect, outer, self.owner_kind)
        start = node.args.get("from_") or node.args.get("from")
        if start is None:
            raise QueryRefused("from", f"{quoted(node)} reads no table; add FROM")
        where = node.args.get("where")
        parts = tuple(conjuncts(where.this)) if where is not None else ()
        first, joins = _in_order(start.this, node.args.get("joins") or [])
        clause = FromClause(scope, self._source(first, ctes), parts)
        for join in joins:
            clause.join(join, self._source(join.this, ctes))
        select = clause.select()
        if where is not None:
            conditions = Conditions(scope, Expressions(scope), _Subqueries(self, ctes))
            select = select.where(conditions.truth(where.this), copy=False)
        return Opened(scope, select, parts)

    def with_ctes(self, node: Any, ctes: CTES) -> CTES:
        """The common table expressions that a query can see, its own included."""
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return ctes
        if clause.args.get("recursive"):
            raise QueryRefused("recursive", "WITH RECURSIVE is not supported; write the steps out")
        known = dict(ctes)
        for one in clause.expressions:
            _only(one, {"this", "alias"}, "with")
            known[folded(one.alias)] = (one, dict(known))
        return known

    def source(self, name: str, relation: Relation) -> Source:
        """A relation under a fresh alias."""
        return Source(name, self.names.alias(), relation)

    def _source(self, node: Any, ctes: CTES) -> Source:
        if isinstance(node, exp.Subquery):
            _only(node, {"this", "alias"}, "from")
            return self.source(node.alias, _columns_named(node, self.relation(node.this, ctes)))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            kind = "lateral" if isinstance(node, exp.Lateral) else "table-function"
            kind = "values" if isinstance(node, exp.Values) else kind
            raise QueryRefused(
                kind, f"{quoted(node)} is not a table or a sub-query; name a table of the database"
            )
        if node.args.get("sample") is not None:
            raise QueryRefused(
                "sample", f"{quoted(node)} is a sample, which others' rows decide; leave it out"
            )
        _only(node, {"this", "db", "catalog", "alias"}, "from")
        parts = tuple(part.name for part in node.parts)
        name = node.alias or node.name
        if len(parts) == 1 and folded(parts[0]) in ctes:
            one, seen = ctes[folded(parts[0])]
            return self.source(name, _columns_named(one, self.relation(one.this, seen)))
        relation = self.table(parts)
        source = self.source(name, _columns_named(node, relation))
        entry = self._catalogue.table(parts)
        if entry is not None and entry.definition is None:
            source.table, _ = self._tables.rule(entry)
        return source

    def table(self, parts: tuple[str, ...]) -> Relation:
        """A table or view with its owners."""
        entry = self._catalogue.table(parts)
        if not self._views:
            self._read[parts[-1]] = None
        if entry is None:
            raise QueryRefused(
                "unknown-table", f"there is no table {'.'.join(parts)!r} to read; check the name"
            )
        if entry.definition is None:
            return self._tables.leaf(entry)
        if entry.refused is not None:
            raise QueryRefused("view", f"the view {parts[-1]!r} {entry.refused}; use another")
        whole = ".".join(entry.parts)
        if whole in self._views:
            raise QueryRefused("recursive", f"the view {parts[-1]!r} reads itself; name its tables")
        outside, self._views = self._views, (*self._views, whole)
        try:
            tree = parsed(entry.definition, self.dialect)
            self._check_names(entry, tree)
            relation = self.relation(tree, {})
        except QueryRefused as refused:
            raise QueryRefused(
                refused.reason, f"the view {parts[-1]!r} cannot be read: {refused}"
            ) from None
        finally:
            self._views = outside
        if len(relation.columns) != len(entry.schema):
            raise QueryRefused(
                "view", f"the view {parts[-1]!r} is older than its tables; make it anew"
            )
        return relation.renamed(list(entry.schema))

    def _check_names(self, view: TableEntry, tree: Any) -> None:
        """PostgreSQL prints names in full where they need it; others leave them to the schema."""
        here = self._catalogue.table(view.parts[-1:])
        if self.dialect == "postgres" or (here is not None and here.parts == view.parts):
            return
        if any(not one.db for one in tree.find_all(exp.Table)):
            raise QueryRefused(
                "view", "it is of another schema and names tables without theirs; write it in full"
            )

    def _select(self, node: exp.Select, ctes: CTES, outer: Scope | None) -> Relation:
        self._check_parts(node)
        ctes = self.with_ctes(node, ctes)
        opened = self.open(node, ctes, outer)
        if node.args.get("limit") is not None and opened.scope.own is not None:
            raise QueryRefused("limit", LIMITED)
        relation = SelectList(node, opened.scope, opened.select, self.names).relation()
        if node.args.get("limit") is not None:
            return first_rows(node, relation, self.names, self.dialect)
        return relation

    def _check_parts(self, node: exp.Select) -> None:
        if node.args.get("sample") is not None:
            raise QueryRefused(
                "sample", "a sample is decided by other people's rows, too; leave it out"
            )
        _only(node, SELECT_PARTS, "clause")

    def _set_operation(self, node: Any, ctes: CTES, outer: Scope | None) -> Relation:
        ctes = self.with_ctes(node, ctes)
        if node.args.get("limit") is not None:
            raise QueryRefused("limit", "LIMIT in a sub-query mixes people; leave it out")
        _only(node, {"this", "expression", "distinct", "with_", "with", "order"}, "setop")
        left, right = (self.relation(one, ctes, outer) for one in (node.this, node.expression))
        word = type(node).__name__.upper()
        if left.private != right.private:
            raise QueryRefused(
                "setop-public", f"{word} of private and public rows; leave out the public ones"
            )
        if len(left.columns) != len(right.columns):
            raise QueryRefused("setop", f"the two sides of {word} must have the same columns")
        distinct = bool(node.args.get("distinct"))
        for a, b in zip(left.columns, right.columns, strict=True):
            if a.sort != b.sort:
                raise QueryRefused("setop", f"{word} has values of two kinds in {a.name!r}; cast")
            if a.sort == "timestamp" and self.dialect == "spark":  # perhaps of two types
                raise QueryRefused("setop", f"{word} of times may fail on Spark; cast to TEXT")
            if distinct and a.sort not in KEYS:
                raise QueryRefused("setop", f"{word} cannot compare {a.name!r}; cast it to TEXT")
        if not isinstance(node, exp.Union):
            if not distinct:
                raise QueryRefused("setop", f"{word} ALL is not supported; write {word} alone")
            same = [
                a.tag == b.tag == PERSON for a, b in zip(left.columns, right.columns, strict=True)
            ]
            if left.private and not any(same):
                raise QueryRefused(
                    "except", f"{word} without the person compares others' rows; add the person"
                )
        sides = [self._plain(one) for one in (left, right)]
        select: Any = type(node)(this=sides[0], expression=sides[1], distinct=distinct)
        columns = tuple(
            RelationColumn(
                a.name,
                f"c{place}",
                a.sort,
                a.tag if a.tag == b.tag else None,
                a.names_person or b.names_person,
            )
            for place, (a, b) in enumerate(zip(left.columns, right.columns, strict=True), start=1)
        )
        unique = frozenset(c.ident for c in columns if c.tag != PERSON) if distinct else None
        return Relation(select, columns, left.private, unique)

    def _plain(self, relation: Relation) -> exp.Select:
        """The relation's columns in order, by place."""
        alias = self.names.alias()
        shown: list[Any] = [
            named(held.at(alias, self.dialect), f"c{place}")
            for place, held in enumerate(relation.columns, start=1)
        ]
        if relation.private:
            shown.append(named(owner(alias), OWN))
        return exp.select(*shown).from_(as_source(relation, alias), copy=False)


class _Subqueries:
    """What a condition needs of sub-queries."""

    def __init__(self, rebuilder: Rebuilder, ctes: CTES) -> None:
        self._rebuilder = rebuilder
        self._ctes = ctes

    def open(self, node: Any, scope: Scope) -> Opened:
        """FROM and WHERE of an EXISTS; what it selects does not matter."""
        if not isinstance(node, exp.Select):
            raise QueryRefused("subquery", f"EXISTS needs a plain SELECT; found {quoted(node)}")
        if node.args.get("limit") is not None:
            raise QueryRefused("limit", LIMITED)
        self._rebuilder._check_parts(node)
        _only(node, {"expressions", "from_", "from", "joins", "where"}, "subquery")
        opened = self._rebuilder.open(node, self._ctes, scope)
        return replace(opened, select=opened.select.select(exp.Literal.number(1), copy=False))

    def whole(self, node: Any, scope: Scope) -> Relation:
        """The relation of an IN, which stands by itself."""
        return self._rebuilder.relation(node, self._ctes)

    def source(self, relation: Relation) -> Source:
        """It under an alias."""
        return self._rebuilder.source("", relation)

    def clause(self, source: Source) -> Any:
        """It as a table."""
        return as_source(source.relation, source.alias)


def parsed(text: str, dialect: str) -> Any:
    """One statement, or a refusal."""
    if len(text) > LONGEST or "\0" in text:
        raise QueryRefused("text", f"a query has at most {LONGEST} characters, no NUL; cut it")
    try:
        trees = [tree for tree in parse(text, dialect=dialect) if tree is not None]
    except RecursionError:
        raise QueryRefused(
            "text", f"the query is nested too deeply; flatten it: {quoted(text)}"
        ) from None
    except SqlglotError:
        raise QueryRefused("syntax", f"correct what is not {dialect} SQL: {quoted(text)}") from None
    if len(trees) != 1:
        more = f"; leave out {quoted(trees[1])}" if trees else ""
        raise QueryRefused("statement", f"ask one statement{more}")
    if isinstance(trees[0], exp.Command | exp.Show):
        raise QueryRefused("statement", "ask a query that begins with SELECT or WITH")
    return trees[0].transform(_in_instead_of_any)


def _in_instead_of_any(node: Any) -> Any:
    """Engines print ``x IN (…)`` of a view as ``x = ANY (…)``, and NOT IN as ``x <> ALL (…)``."""
    other = node.expression if isinstance(node, exp.EQ | exp.NEQ) else None
    if isinstance(node, exp.EQ) and isinstance(other, exp.Any):
        listed = other.this
    elif isinstance(node, exp.NEQ) and isinstance(other, exp.Anonymous) and other.name == "ALL":
        listed = other.expressions[0]
    else:
        return node
    while isinstance(listed, exp.Paren):
        listed = listed.this
    if isinstance(listed, exp.Array):
        made = exp.In(this=node.this, expressions=listed.expressions)
    elif isinstance(listed, exp.Query):
        made = exp.In(this=node.this, query=listed)
    else:
        return node
    return exp.not_(made) if isinstance(node, exp.NEQ) else made


def _in_order(first: Any, joins: list[Any]) -> tuple[Any, list[Any]]:
    """The first source and its joins, without the parentheses that engines write around them."""
    inner = first.args.get("joins") or []
    if inner:
        first = type(first)(**{k: v for k, v in first.args.items() if k != "joins"})
        joins = [*inner, *joins]
    if isinstance(first, exp.Subquery) and not first.alias and isinstance(first.this, exp.Table):
        return _in_order(first.this, joins)
    return first, joins


def _columns_named(node: Any, relation: Relation) -> Relation:
    alias = node.args.get("alias")
    names = [one.name for one in (alias.args.get("columns") or [])] if alias is not None else []
    if not names:
        return relation
    if len(names) > len(relation.columns):
        raise QueryRefused("from", f"{quoted(node)} names too many columns; leave some out")
    rest = [held.name for held in relation.columns[len(names) :]]
    return relation.renamed([*names, *rest])


def _only(node: Any, names: set[str], reason: str) -> None:
    """Clauses that no rule speaks of are refused."""
    extra = [name for name, value in node.args.items() if value and name not in names]
    if extra:
        raise QueryRefused(
            reason,
            f"{extra[0].strip('_').upper()} in {quoted(node)} is not supported; leave it out",
        )
