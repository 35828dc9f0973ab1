"""What a SELECT inside a query shows: expressions, groups of one owner, numbered rows, DISTINCT.

The clauses are built as stages, one SELECT around the other: the rows of FROM and WHERE; groups
and aggregates with the owner among the keys; window functions within the owner's rows; the list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from topsecret.sources.relations.aggregates import aggregate, numbering, outermost
from topsecret.sources.relations.caller_list import CallerList
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
from topsecret.sources.relations.scope import Expressions, Scope, names_person, tag_of
from topsecret.sources.sql.dialects import as_text
from topsecret.sources.sql.operand_types import Typed, double, is_whole_number, whole
from topsecret.sources.sql.statements import named


@dataclass(slots=True)
class Stage:
    """Rows so far, and what the caller's expressions mean in them."""

    relation: Relation
    alias: str
    meaning: dict[str, RelationColumn]
    """Columns by the canonical text of the caller's expression."""


class SelectList:
    """Rebuilds everything of a SELECT but FROM and WHERE."""

    def __init__(self, node: exp.Select, scope: Scope, select: exp.Select, names: Names) -> None:
        self._node = node
        self._scope = scope
        self._select = select
        self._names = names
        self._dialect = scope.dialect
        self._list = CallerList(node, scope)
        self._stage: Stage | None = None

    def relation(self) -> Relation:
        """The whole."""
        node = self._node
        having, qualify = node.args.get("having"), node.args.get("qualify")
        read = [one for _, one in self._list.shown]
        read += [clause.this for clause in (having, qualify) if clause is not None]
        aggregates = [one for part in read for one in self._list.aggregates(part)]
        if node.args.get("group") is not None or aggregates:
            self._group(aggregates)
        elif having is not None:
            raise QueryRefused("having", "HAVING needs GROUP BY; add it, or write WHERE")
        if having is not None:
            self._keep(having.this)
        distinct = node.args.get("distinct")
        on = distinct.args.get("on") if distinct is not None else None
        windows = [one for part in read for one in outermost(part, exp.Window)]
        if on is not None and (windows or qualify is not None):
            raise QueryRefused(
                "distinct", "DISTINCT ON with a window function is not supported; use one of them"
            )
        if windows:
            self._number(windows)
        if qualify is not None:
            self._keep(qualify.this)
            self._first_of(qualify.this)
        if on is not None:
            self._distinct_on(on)
        return self._projected(distinct is not None and on is None)

    # -- stages

    def _group(self, aggregates: list[Any]) -> None:
        keys = self._list.keys()
        private = self._scope.own is not None
        if private and not any(tag_of(key, self._scope) == PERSON for key in keys):
            listed = ", ".join(quoted(key) for key in keys)
            raise QueryRefused(
                "group",
                (f"GROUP BY {listed}" if keys else "an aggregate without GROUP BY")
                + " mixes people: its rows are of many. Group by the person as well",
            )
        expressions = Expressions(self._scope)
        columns: list[RelationColumn] = []
        values: list[exp.Expression] = []
        meaning: dict[str, RelationColumn] = {}
        for key in keys:
            typed = expressions.typed(key)
            if typed.value is not None or typed.sort == "null":
                raise QueryRefused("group", f"GROUP BY {quoted(key)} is a constant; leave it out")
            if typed.sort not in KEYS:
                raise QueryRefused("group", f"GROUP BY {quoted(key)}: cast it to TEXT first")
            columns.append(self._list.described(key, f"c{len(columns) + 1}", typed.sort))
            values.append(typed.node)
            meaning[self._list.canonical(key)] = columns[-1]
        grouped = [value.copy() for value in values]
        unique = frozenset(c.ident for c in columns if c.tag != PERSON)
        for one in aggregates:
            text = self._list.canonical(one)
            if text in meaning:
                continue
            typed = aggregate(one, expressions, self._dialect)
            person = not one.find(exp.Count) and names_person(one, self._scope)
            made = RelationColumn("", f"c{len(columns) + 1}", typed.sort, None, person)
            columns.append(made)
            values.append(typed.node)
            meaning[text] = made
        own = self._scope.own
        shown: list[Any] = [named(v, c.ident) for v, c in zip(values, columns, strict=True)]
        if own is not None:
            shown.append(named(own.copy(), OWN))
            grouped.append(own.copy())
        select = self._select.select(*shown, copy=False)
        if grouped:
            select = select.group_by(*grouped, copy=False)
        relation = Relation(select, tuple(columns), private, unique if private else None)
        self._stage = Stage(relation, self._names.alias(), meaning)

    def _base(self) -> Stage:
        """All columns of the sources, each once, as a stage."""
        columns: list[RelationColumn] = []
        shown: list[Any] = []
        meaning: dict[str, RelationColumn] = {}
        for source in self._scope.sources:
            for held in source.relation.columns:
                made = RelationColumn(
                    held.name,
                    f"c{len(columns) + 1}",
                    held.sort,
                    held.tag,
                    held.names_person,
                    None if source.optional else held.origin,
                )
                columns.append(made)
                shown.append(named(held.at(source.alias, self._dialect), made.ident))
                meaning[f"{source.alias}.{held.ident}"] = made
        own = self._scope.own
        if own is not None:
            shown.append(named(own.copy(), OWN))
        select = self._select.select(*shown, copy=False)
        relation = Relation(select, tuple(columns), own is not None)
        return Stage(relation, self._names.alias(), meaning)

    def _number(self, windows: list[Any]) -> None:
        stage = self._stage or self._base()
        expressions = self._expressions(stage)
        rows = [(stage.alias, held) for held in stage.relation.columns]
        own = owner(stage.alias) if stage.relation.private else None
        columns, meaning = list(stage.relation.columns), dict(stage.meaning)
        shown: list[Any] = [named(h.at(stage.alias, self._dialect), h.ident) for h in columns]
        for one in windows:
            parts = one.args.get("partition_by") or []
            if own is not None and not any(tag_of(p, self._scope) == PERSON for p in parts):
                raise QueryRefused(
                    "window", f"{quoted(one)} compares people. Add the person to PARTITION BY"
                )
            value = numbering(one, expressions, own, rows, self._dialect)
            made = RelationColumn("", f"c{len(columns) + 1}", "integer")
            columns.append(made)
            shown.append(named(value, made.ident))
            meaning[self._list.canonical(one)] = made
        self._around(stage, shown, columns, meaning)

    def _distinct_on(self, on: Any) -> None:
        keys = list(on.expressions)
        if any(isinstance(key.unnest(), exp.Literal) for key in keys):
            raise QueryRefused("distinct", "DISTINCT ON needs columns, not places or constants")
        if self._stage is None:
            self._names.alias()  # one that is not used: stored questions know the others' names
        held = self._scope.own is not None if self._stage is None else self._stage.relation.private
        if held and not any(tag_of(k, self._scope) == PERSON for k in keys):
            raise QueryRefused(
                "distinct",
                "DISTINCT ON without the person keeps one row of several people; add it",
            )
        window = exp.Window(
            this=exp.RowNumber(),
            partition_by=keys,
            order=self._node.args.get("order"),
            over="OVER",
        )
        self._number([window])
        self._keep(exp.EQ(this=window, expression=exp.Literal.number(1)))
        self._first_of(exp.EQ(this=window, expression=exp.Literal.number(1)))

    def _keep(self, condition: Any) -> None:
        """Only the rows of the stage that meet a condition."""
        stage = self._stage or self._base()
        truth = self._expressions(stage).truth(condition)
        columns = list(stage.relation.columns)
        shown: list[Any] = [named(h.at(stage.alias, self._dialect), h.ident) for h in columns]
        unique = stage.relation.unique
        self._around(stage, shown, columns, stage.meaning, truth)
        assert self._stage is not None
        self._stage.relation = _with_unique(self._stage.relation, unique)

    def _around(
        self,
        stage: Stage,
        shown: list[Any],
        columns: list[RelationColumn],
        meaning: dict[str, RelationColumn],
        where: exp.Expression | None = None,
    ) -> None:
        private = stage.relation.private
        if private:
            shown.append(named(owner(stage.alias), OWN))
        select = exp.select(*shown).from_(as_source(stage.relation, stage.alias), copy=False)
        if where is not None:
            select = select.where(where, copy=False)
        relation = Relation(select, tuple(columns), private, stage.relation.unique)
        self._stage = Stage(relation, self._names.alias(), dict(meaning))

    def _first_of(self, condition: Any) -> None:
        """ROW_NUMBER() … = 1 alone leaves one row for each partition."""
        plain = condition.unnest()
        if not isinstance(plain, exp.EQ | exp.LTE) or self._stage is None:
            return
        window, one = plain.this.unnest(), plain.expression.unnest()
        first = isinstance(one, exp.Literal) and not one.is_string and one.this == "1"
        if not first or not isinstance(window, exp.Window):
            return
        if not isinstance(window.this, exp.RowNumber):
            return
        parts = [self._list.canonical(part) for part in window.args.get("partition_by") or []]
        held = [self._stage.meaning.get(part) for part in parts]
        if all(one is not None for one in held):
            unique = frozenset(c.ident for c in held if c is not None and c.tag != PERSON)
            self._stage.relation = _with_unique(self._stage.relation, unique)

    def _projected(self, distinct: bool) -> Relation:
        stage = self._stage
        expressions = Expressions(self._scope) if stage is None else self._expressions(stage)
        columns: list[RelationColumn] = []
        shown: list[Any] = []
        plain: dict[str, str] = {}
        for name, node in self._list.shown:
            typed = self._settled(node, expressions.typed(node))
            if distinct and typed.sort not in KEYS:
                raise QueryRefused("distinct", f"DISTINCT cannot compare {quoted(node)}; cast it")
            made = self._list.described(node, f"c{len(columns) + 1}", typed.sort, name)
            columns.append(made)
            shown.append(named(typed.node, made.ident))
            if stage is not None and self._list.canonical(node) in stage.meaning:
                plain[stage.meaning[self._list.canonical(node)].ident] = made.ident
        unique: frozenset[str] | None = None
        if distinct:
            unique = frozenset(c.ident for c in columns if c.tag != PERSON)
        elif stage is not None and stage.relation.unique is not None:
            kept = stage.relation.unique <= set(plain)
            unique = frozenset(plain[i] for i in stage.relation.unique) if kept else None
        if stage is None:
            own = self._scope.own
            private = own is not None
            base = self._select
            held = own.copy() if own is not None else None
        else:
            private = stage.relation.private
            base = exp.select().from_(as_source(stage.relation, stage.alias), copy=False)
            held = owner(stage.alias) if private else None
        if held is not None:
            shown.append(named(held, OWN))
        select = base.select(*shown, copy=False)
        if distinct:
            select = select.distinct(copy=False)
        return Relation(select, tuple(columns), private, unique)

    def _expressions(self, stage: Stage) -> Expressions:
        def special(node: Any) -> Typed | None:
            if not isinstance(node, exp.Expression) or isinstance(node, exp.Literal):
                return None
            held = stage.meaning.get(self._list.canonical(node))
            if held is not None:
                return Typed(held.at(stage.alias, self._dialect), held.sort)
            if isinstance(node, exp.Column) and self._scope.find(node) is not None:
                raise QueryRefused(
                    "bare",
                    f"{quoted(node)} is neither grouped by nor aggregated; add it to GROUP BY",
                )
            return None

        inner = Scope(self._dialect, self._scope)
        inner.own = owner(stage.alias) if stage.relation.private else None
        return Expressions(inner, special)

    def _settled(self, node: Any, typed: Typed) -> Typed:
        """A literal as a value of a kind that a column can have."""
        if typed.sort == "null":
            raise QueryRefused("expression", f"{quoted(node)} never has a value; leave it out")
        if typed.sort == "number":
            if not is_whole_number(typed.value):
                return Typed(double(typed), "float")
            return Typed(
                whole(typed.value, self._dialect), "integer"
            )  # 12.0 would be another text than 12
        if typed.sort == "text" and typed.value is not None:
            return Typed(as_text(typed.node, self._dialect), "text")
        return typed


def _with_unique(relation: Relation, unique: frozenset[str] | None) -> Relation:
    return replace(relation, unique=unique)
