"""Names of a query and what they mean: the sources of one SELECT, and those around it.

Expressions are rebuilt by ``safe_expressions``, which proves that no row can make them fail; here
their columns are found in the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import PERSON, Relation, RelationColumn, owner
from topsecret.sources.sql.expressions import CASTS
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.operand_types import Sort, Typed
from topsecret.sources.sql.safe_expressions import ELSEWHERE, Total

CLOCKS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentDatetime, exp.Rand)
INSTEAD = (
    (exp.TimeToStr, "; write DATE_TRUNC('month', …), or EXTRACT(YEAR FROM …) and so on"),
    ((exp.Add, exp.Sub), "; write the value itself, or compare the columns as they are"),
    ((exp.Mul, exp.Div), "; arithmetic may overflow: SUM(a * b) alone may multiply"),
)
"""What to write instead of what is often written."""
PSEUDO = "person"
"""A name for the owner, where no column has it."""


@dataclass(slots=True)
class Source:
    """One relation in a FROM clause."""

    name: str
    """As the caller calls it; empty where it has no name."""
    alias: str
    relation: Relation
    table: str = ""
    """The table that it is, as the privacy file calls it; empty for anything else."""
    optional: bool = False
    """Whether an outer join may leave it without a row."""


@dataclass(frozen=True, slots=True)
class Found:
    """A column of a source."""

    source: Source
    column: RelationColumn


class Scope:
    """The sources that a SELECT can name, and the scope around a correlated sub-query."""

    def __init__(self, dialect: str, outer: Scope | None = None, owners: Sort = "text") -> None:
        self.dialect = dialect
        self.outer = outer
        self.owner_sort: Sort = owners if outer is None else outer.owner_sort
        self.sources: list[Source] = []
        self.own: exp.Expression | None = None
        """The owner of a combined row; None while all sources are public."""
        self.merged: dict[str, Source] = {}
        """Columns of USING: the source whose column an unqualified name means."""
        self._names: dict[int, tuple[Any, dict[str, list[RelationColumn]]]] = {}

    def find(self, node: exp.Column) -> Found | None:
        """The column that is meant, here or further out; None for the owner's own name."""
        found = self._here(node)
        if found is not None:
            return found
        if self.outer is not None:
            return self.outer.find(node)
        if not node.table and folded(node.name) == PSEUDO:
            return None
        raise QueryRefused("column", f"there is no column {quoted(node)} here; check the names")

    def _here(self, node: exp.Column) -> Found | None:
        wanted, table = node.name, node.table
        merged = self.merged.get(folded(wanted)) if not table else None
        candidates = [
            Found(source, held)
            for source in self.sources
            if (not table or folded(source.name) == folded(table))
            and (merged is None or source is merged)
            for held in self._named(source).get(folded(wanted), ())
        ]
        if len(candidates) > 1:
            exact = [f for f in candidates if f.column.name == wanted]
            candidates = exact if len(exact) == 1 else candidates
        if len(candidates) > 1:
            raise QueryRefused(
                "column", f"{quoted(node)} may mean several columns; say which table"
            )
        return candidates[0] if candidates else None

    def _named(self, source: Source) -> dict[str, list[RelationColumn]]:
        """A source's columns by their names, which are looked for one by one."""
        columns = source.relation.columns
        held, names = self._names.get(id(source), ((), {}))
        if held is not columns:
            names = {}
            for one in columns:
                if one.name:
                    names.setdefault(folded(one.name), []).append(one)
            self._names[id(source)] = columns, names
        return names

    def owner_here(self) -> exp.Expression | None:
        """The owner of the row at hand, or of the row around it."""
        if self.own is not None or self.outer is None:
            return self.own
        return self.outer.owner_here()

    def stars(self, table: str) -> list[Found]:
        """The columns of ``*`` or ``t.*``."""
        found = [
            Found(source, held)
            for source in self.sources
            if not table or folded(source.name) == folded(table)
            for held in source.relation.columns
            if held.name
        ]
        if not found:
            raise QueryRefused("column", f"{table}.* names no table of this query; check the name")
        return found


Rebuilt = TypeVar("Rebuilt")
Special = Callable[[Any], Typed | None]
"""What a node stands for that is no expression of its own, such as an aggregate; else None."""


class Expressions(Total):
    """Rebuilds expressions over the sources of a scope."""

    def __init__(self, scope: Scope, special: Special | None = None) -> None:
        super().__init__({}, scope.dialect)
        self._scope = scope
        self._special = special

    def typed(self, node: Any) -> Typed:
        """The tree for the engine and what it holds."""
        if self._special is not None:
            known = self._special(node)
            if known is not None:
                return known
        if isinstance(node, exp.Column):
            return self._found(node)
        if isinstance(node, CLOCKS):
            raise _changes(node)
        if isinstance(node, exp.ILike) and isinstance(node.expression, exp.Literal):
            pattern = exp.Literal.string(str(node.expression.this).lower())
            more = {k: v for k, v in node.args.items() if k not in {"this", "expression"}}
            node = exp.Like(this=exp.Lower(this=node.this), expression=pattern, **more)
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise QueryRefused(
                "expression", f"{quoted(node)} has no value; write it into the query"
            )
        if isinstance(node, exp.AggFunc):
            raise QueryRefused(
                "measure", f"{quoted(node)} may not stand here; use it in the list, or in HAVING"
            )
        if isinstance(node, exp.Window):
            raise QueryRefused(
                "window", f"{quoted(node)} may not stand here; use it in the list of a sub-query"
            )
        if isinstance(node, exp.Query | exp.Exists):
            raise QueryRefused(
                "subquery",
                f"the sub-query {quoted(node)} must be a condition of WHERE by itself, "
                "combined by AND and OR",
            )
        if isinstance(node, exp.Cast | exp.TryCast):
            to = node.args["to"]
            if to.this == exp.DataType.Type.TIMESTAMPNTZ:  # DuckDB's TIMESTAMP, as it is parsed
                to = exp.DataType.build("TIMESTAMP")
                node = type(node)(**{**node.args, "to": to})
            if to.this not in CASTS or to.expressions:
                raise QueryRefused(
                    "expression",
                    f"{quoted(node)} casts to a type that is not supported; use DATE, TIMESTAMP, "
                    "TEXT, BIGINT, DOUBLE or BOOLEAN",
                )
        return _refusing(super().typed, node)

    def truth(self, node: Any) -> exp.Expression:
        """The tree of a condition."""
        return _refusing(super().truth, node)

    def _found(self, node: exp.Column) -> Typed:
        if isinstance(node.this, exp.Star):
            raise QueryRefused("expression", f"{quoted(node)} may not stand here; name a column")
        found = self._scope.find(node)
        if found is None:
            own = self._scope.owner_here()
            if own is None:
                raise QueryRefused("column", "no row here has an owner; join a table that has one")
            return Typed(own.copy(), self._scope.owner_sort)
        return Typed(found.column.at(found.source.alias, self._scope.dialect), found.column.sort)


def _refusing(rebuild: Callable[[Any], Rebuilt], node: Any) -> Rebuilt:
    try:
        return rebuild(node)
    except QueryRefused:
        raise
    except InvalidParameter as error:
        for part in node.find_all(*CLOCKS):
            raise _changes(part) from None
        hint = next((words for kind, words in INSTEAD if isinstance(node, kind)), "")
        text = str(error).removesuffix(ELSEWHERE) if hint else str(error)
        raise QueryRefused("expression", f"{text}{hint}") from None


def _changes(node: Any) -> QueryRefused:
    return QueryRefused("clock", f"{quoted(node)} changes from run to run; write the value itself")


def columns_read(node: Any, scope: Scope) -> Iterator[Found | None]:
    """Every column that an expression reads; None for the owner."""
    for one in node.find_all(exp.Column):
        if not isinstance(one.this, exp.Star):
            yield scope.find(one)


def names_person(node: Any, scope: Scope) -> bool:
    """Whether an expression is made from a column that names a person."""
    return any(f is None or f.column.names_person for f in columns_read(node, scope))


def tag_of(node: Any, scope: Scope) -> tuple[str, ...] | None:
    """What a plain column identifies."""
    node = node.unnest()
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    found = scope.find(node)
    return PERSON if found is None else found.column.tag


def conjuncts(node: Any) -> list[Any]:
    """The parts of a condition that must all hold."""
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def same_owner(mine: exp.Expression, alias: str) -> exp.EQ:
    """The equality of owners that is added wherever private rows meet."""
    return exp.EQ(this=mine.copy(), expression=owner(alias))
