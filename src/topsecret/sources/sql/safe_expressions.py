"""Expressions that no row can make fail: each part has a kind, and what is not proven is refused.

An engine that compares text with a number, or text with a truth value, casts every row and fails
on the first that is neither. So a tree is rebuilt from the leaves up, from the kinds of the
columns: operands must be of one kind, casts are those that make NULL of what cannot be cast, and
date parts are those of years 1 to 9999 (an infinite date has none).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any, ClassVar

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.source import Schema
from topsecret.sources.sql.dialects import as_text, in_case, time_text, tries, try_cast
from topsecret.sources.sql.expressions import COMPARISONS, DATE_PARTS, TIME_PARTS, TRUNCATED, shown
from topsecret.sources.sql.operand_types import (
    CASTS,
    NAMES,
    TRIED,
    Sort,
    Typed,
    column_of,
    constant,
    dated_literal,
    literal,
    spark_time,
    spark_years,
    unified,
)

WIDE = {"duckdb", "postgres", "spark"}
"""Engines with dates and times outside the years that date parts are proven for."""

YEARS: dict[Sort, tuple[str, str]] = {
    "date": ("0001-01-01", "9999-12-31"),
    "timestamp": ("0001-01-01 00:00:00", "9999-12-31 23:59:59"),
}
LONGEST_REPEATED = 500
"""At most so many nodes of a date whose part is taken: the statement has the date twice."""
LONGEST_JOINED = 10_000
"""At most so many characters of each text that is joined with others."""
MOST_JOINED = 100
ELSEWHERE = "; leave it out, or have the table hold it in a column"
FARTHEST = 1_000_000
"""The last place of a text that an expression may name."""


class Total:
    """Rebuilds checked trees over the columns of one schema for one engine."""

    def __init__(self, schema: Schema, dialect: str) -> None:
        self._schema = schema
        self._dialect = dialect

    def typed(self, node: Any) -> Typed:
        """The tree for the engine and what it holds, or an error that names what may fail."""
        for kind, rebuild in self._RULES.items():
            if isinstance(node, kind):
                return rebuild(self, node)
        raise _refused(node, f"is not known to be safe on every row{ELSEWHERE}")

    def truth(self, node: Any) -> exp.Expression:
        """The tree of a condition."""
        part = self.typed(node)
        if part.sort not in {"boolean", "null"}:
            raise _refused(
                node,
                f"is {NAMES[part.sort]} and not a truth value; compare it, say: "
                f"{shown(node.sql())} = …",
            )
        return part.node

    def _text(self, node: Any) -> Typed:
        part = self.typed(node)
        if part.sort not in {"text", "null"}:
            raise _refused(node, f"is {NAMES[part.sort]} and must be text; cast it to TEXT")
        return part

    def _unified(self, node: Any, parts: Sequence[Any], compared: bool) -> tuple[Sort, list[Any]]:
        typed = [self.typed(part) for part in parts]
        found = unified(typed, self._dialect, compared)
        if found is None:
            raise mixed(node, parts, typed)
        sort, nodes = found
        if sort == "null" and not compared:
            raise _refused(node, "never has a value; leave it out")
        return sort, [_wrapped(one) for one in nodes]

    def _column(self, node: Any) -> Typed:
        return column_of(node.name, self._schema[node.name], self._dialect)

    def _literal(self, node: Any) -> Typed:
        _only(node, "this", "is_string")
        if node.is_string:
            return literal(node.this)
        with suppress(InvalidOperation):
            return literal(Decimal(node.this))
        raise _refused(node, "is not a number that every engine reads; write digits")

    def _negative(self, node: Any) -> Typed:
        part = self.typed(node.this)
        if part.sort != "number":
            raise _refused(node, "may overflow; only a literal may have a minus")
        return literal(-part.value)

    def _paren(self, node: Any) -> Typed:
        part = self.typed(node.this)
        return Typed(exp.Paren(this=part.node), part.sort, part.value)

    def _connected(self, node: Any) -> Typed:
        parts = [self.truth(part) for part in _chain(node)]
        return _true_or_false(reduce(lambda a, b: type(node)(this=a, expression=b), parts))

    def _not(self, node: Any) -> Typed:
        return _true_or_false(exp.Not(this=self.truth(node.this)))

    def _compared(self, node: Any) -> Typed:
        _only(node, "this", "expression")
        _, (left, right) = self._unified(node, (node.this, node.expression), compared=True)
        return _true_or_false(type(node)(this=left, expression=right))

    def _between(self, node: Any) -> Typed:
        _only(node, "this", "low", "high", "negate")
        _, (this, low, high) = self._unified(node, (node.this, *_bounds(node)), compared=True)
        if isinstance(low, exp.Collate):
            low = exp.Paren(this=low)  # PostgreSQL cannot read it otherwise
        return _negated(node, exp.Between(this=this, low=low, high=high))

    def _in(self, node: Any) -> Typed:
        _only(node, "this", "expressions", "negate")
        _, (this, *listed) = self._unified(node, (node.this, *node.expressions), compared=True)
        return _negated(node, exp.In(this=this, expressions=listed))

    def _is(self, node: Any) -> Typed:
        _only(node, "this", "expression", "negate")
        if isinstance(node.expression, exp.Null):
            return _negated(
                node, exp.Is(this=_wrapped(self.typed(node.this).node), expression=exp.null())
            )
        if not isinstance(node.expression, exp.Boolean):
            raise _refused(node, "is not known to be safe on every row; write IS NULL")
        known = exp.Boolean(this=bool(node.expression.this))
        return _negated(node, exp.Is(this=_wrapped(self.truth(node.this)), expression=known))

    def _like(self, node: Any) -> Typed:
        _only(node, "this", "expression", "negate")
        pattern = self.typed(node.expression)
        if pattern.sort != "text" or pattern.value is None or "\\" in pattern.value:
            raise _refused(node, "may fail: LIKE needs a literal pattern without a backslash")
        return _negated(node, exp.Like(this=self._text(node.this).node, expression=pattern.node))

    def _case(self, node: Any) -> Typed:
        _only(node, "this", "ifs", "default", "true", "false")
        branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
        default = node.args.get("false" if isinstance(node, exp.If) else "default")
        base, tests = None, [branch.this for branch in branches]
        if isinstance(node, exp.Case) and node.this:
            _, (base, *tests) = self._unified(node, (node.this, *tests), compared=True)
        else:
            tests = [self.truth(test) for test in tests]
        results = [branch.args["true"] for branch in branches]
        sort, values = self._unified(node, [*results, default or exp.null()], compared=False)
        ifs = [exp.If(this=t, true=v) for t, v in zip(tests, values, strict=False)]
        last = values[-1] if default is not None else None
        return Typed(exp.Case(this=base, ifs=ifs, default=last), sort)

    def _coalesce(self, node: Any) -> Typed:
        _only(node, "this", "expressions", "is_nvl", "is_null")
        sort, parts = self._unified(node, (node.this, *node.expressions), compared=False)
        return Typed(exp.Coalesce(this=parts[0], expressions=parts[1:]), sort)

    def _nullif(self, node: Any) -> Typed:
        _only(node, "this", "expression")
        sort, (this, other) = self._unified(node, (node.this, node.expression), compared=False)
        return Typed(exp.Nullif(this=this, expression=other), sort)

    def _joined(self, node: Any) -> Typed:
        """Texts one after the other, each cut: no row makes a text that is too long."""
        _only(node, "this", "expression", "expressions", "safe", "coalesce")
        joined: list[Any] = []
        if len(node.expressions) > MOST_JOINED:
            raise _refused(node, f"joins more than {MOST_JOINED} texts; join fewer")
        for part in node.expressions or [node.this, node.expression]:
            length = exp.Literal.number(LONGEST_JOINED)
            text = exp.Substring(
                this=self._text(part).node, start=exp.Literal.number(1), length=length
            )
            # CONCAT of most engines leaves out what has no value.
            empty = [exp.Literal.string("")] if node.args.get("coalesce") else []
            joined.append(exp.Coalesce(this=text, expressions=empty) if empty else text)
        whole = reduce(lambda a, b: exp.DPipe(this=a, expression=b, safe=True), joined)
        return Typed(exp.Paren(this=whole), "text")

    def _of_text(self, node: Any) -> Typed:
        _only(node, "this")
        part = self._text(node.this)
        if isinstance(node, exp.Length):
            return Typed(exp.Length(this=part.node), "integer")
        return Typed(in_case(type(node), part.node, self._dialect), "text")

    def _trim(self, node: Any) -> Typed:
        _only(node, "this", "expression", "position")
        removed = None
        if node.args.get("expression") is not None:
            removed = self.typed(node.expression)
            if removed.sort != "text" or not removed.value:
                raise _refused(node, "may trim the characters of a literal only")
        part = self._text(node.this)
        # Engines differ in which characters are spaces: the space alone is one on all of them.
        cut = removed.node if removed else exp.Literal.string(" ")
        position = node.args.get("position")
        return Typed(exp.Trim(this=part.node, expression=cut, position=position), "text")

    def _substring(self, node: Any) -> Typed:
        _only(node, "this", "start", "length")
        places: dict[str, Any] = {}
        for name in ("start", "length"):
            given = node.args.get(name)
            if given is None:
                continue
            place = self.typed(given)
            number = place.value
            if place.sort != "number" or not 0 <= number <= FARTHEST or number % 1:
                raise _refused(node, "may fail: its places must be literals, 0 or more")
            places[name] = place.node
        if "start" not in places:
            raise _refused(node, "needs the place where it starts; add it, say 1")
        return Typed(exp.Substring(this=self._text(node.this).node, **places), "text")

    def _cast(self, node: Any) -> Typed:
        _only(node, "this", "to", "safe")
        part, (sort, type_name) = self.typed(node.this), CASTS[node.args["to"].this]
        if part.sort == "text" and part.value is not None and sort in YEARS:
            dated = dated_literal(part, sort)
            if dated is None:
                raise _refused(node, "is not one; write, say: DATE '2024-05-01'")
            return dated
        if sort == "text":
            if part.sort == "text":
                return Typed(part.node, sort)
            written = time_text if part.sort == "timestamp" else as_text
            return Typed(written(part.node, self._dialect), sort)
        if part.sort == "null" or (part.sort, sort) in self._casts():
            return Typed(exp.cast(part.node, type_name), sort)
        if tries(self._dialect) and part.sort in TRIED[sort]:
            timed = self._dialect == "spark" and sort == "timestamp" and part.sort in YEARS
            return Typed((spark_time if timed else try_cast)(part.node, type_name), sort)
        if not tries(self._dialect):
            raise _refused(
                node,
                f"would fail on a row that cannot be cast, and {self._dialect} has no cast that "
                "leaves it out; compare without the cast",
            )
        raise _refused(
            node, f"casts what is {NAMES[part.sort]}; there is no such cast; leave it out"
        )

    def _casts(self) -> set[tuple[Sort, str]]:
        """Casts that are plain and total."""
        if self._dialect == "sqlite":
            return {(s, to) for s in NAMES for to in ("integer", "float") if s not in YEARS}
        always = {("integer", "float"), ("number", "float"), ("float", "float")}
        return always | ({("timestamp", "date")} if self._dialect == "postgres" else set())

    def _part(self, node: Any) -> Typed:
        name, this = DATE_PARTS.get(type(node)), node.this
        if isinstance(node, exp.Extract):
            name, this = node.this.name.upper(), node.expression
        _only(node, "this", "expression")
        value = self._years(node, this, name in TIME_PARTS)
        if name not in {*TIME_PARTS, *DATE_PARTS.values()}:
            raise _refused(node, "is not a part that every date has; use YEAR, MONTH or DAY")
        if isinstance(node, exp.Extract) or self._dialect in {"duckdb", "postgres"}:
            part: Any = exp.Extract(this=exp.var(name), expression=value.node)
            if name == "SECOND" and self._dialect != "duckdb":  # decimals: 12.000000 is not 12
                part = exp.cast(exp.Floor(this=part), exp.DataType.Type.BIGINT)
            return Typed(part, "integer")
        return Typed(type(node)(this=value.node), "integer")

    def _truncated(self, node: Any) -> Typed:
        _only(node, "this", "unit")
        unit = node.args["unit"].name.upper()
        if unit not in TRUNCATED:
            raise _refused(node, f"may truncate to {', '.join(TRUNCATED)} only")
        value = self._years(node, node.this, unit in TIME_PARTS)
        inner = value.node
        if value.sort == "date":
            inner = exp.cast(inner, exp.DataType.Type.TIMESTAMP)
        return Typed(exp.TimestampTrunc(this=inner, unit=exp.var(unit)), "timestamp")

    def _years(self, node: Any, this: Any, timed: bool) -> Typed:
        """A date or a time of the years 1 to 9999; NULL for all others."""
        value = self.typed(this)
        if self._dialect == "sqlite":
            raise _refused(node, "is not known to SQLite; take a part of the text by SUBSTRING")
        if value.sort not in YEARS or (timed and value.sort == "date"):
            need = "a time" if timed else "a date or a time"
            raise _refused(node, f"needs {need}, and {shown(this.sql())} is {NAMES[value.sort]}")
        if self._dialect not in WIDE or value.value is not None:
            return value
        if sum(1 for _ in value.node.walk()) > LONGEST_REPEATED:
            raise _refused(node, "is too long; shorten it")
        type_name = "DATE" if value.sort == "date" else "TIMESTAMP"
        low, high = (constant(end, type_name) for end in YEARS[value.sort])
        inside: Any = exp.Between(this=value.node.copy(), low=low, high=high)
        if self._dialect == "spark":
            inside = spark_years(value.node)
        kept = exp.Case(ifs=[exp.If(this=inside, true=value.node)])
        return Typed(kept, value.sort)

    _RULES: ClassVar[dict[Any, Callable[[Total, Any], Typed]]] = {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Boolean: lambda _, node: literal(bool(node.this)),
        exp.Null: lambda _, node: literal(None),
        exp.Neg: _negative,
        exp.Paren: _paren,
        (exp.And, exp.Or): _connected,
        exp.Not: _not,
        COMPARISONS: _compared,
        exp.Between: _between,
        exp.In: _in,
        exp.Is: _is,
        exp.Like: _like,
        (exp.Case, exp.If): _case,
        exp.Coalesce: _coalesce,
        exp.Nullif: _nullif,
        (exp.Concat, exp.DPipe): _joined,
        (exp.Lower, exp.Upper, exp.Length): _of_text,
        exp.Trim: _trim,
        exp.Substring: _substring,
        (exp.Cast, exp.TryCast): _cast,
        (exp.Extract, *DATE_PARTS): _part,
        (exp.DateTrunc, exp.TimestampTrunc): _truncated,
    }


def _wrapped(node: exp.Expression) -> exp.Expression:
    """An operand in parentheses, if it is a condition: not every engine reads ``a = b = c``."""
    conditions = (*COMPARISONS, exp.Between, exp.In, exp.Is, exp.Like, exp.Not, exp.Connector)
    return exp.Paren(this=node) if isinstance(node, conditions) else node


def _true_or_false(node: exp.Expression) -> Typed:
    return Typed(node, "boolean")


def _negated(node: Any, rebuilt: exp.Expression) -> Typed:
    return _true_or_false(exp.not_(rebuilt) if node.args.get("negate") else rebuilt)


def _bounds(node: Any) -> tuple[Any, Any]:
    return node.args["low"], node.args["high"]


def _chain(node: Any) -> list[Any]:
    """The parts of ``a AND b AND c``, which may be many: not by recursion."""
    parts: list[Any] = []
    left = node
    while type(left) is type(node):
        parts.append(left.expression)
        left = left.this
    return [left, *reversed(parts)]


def _only(node: Any, *names: str) -> None:
    """Options that nobody has thought about are refused."""
    if any(value for name, value in node.args.items() if name not in names):
        raise _refused(node, f"is not known to be safe on every row{ELSEWHERE}")


def _refused(node: Any, why: str) -> InvalidParameter:
    return InvalidParameter(f"{shown(node.sql())} {why}")


def mixed(node: Any, parts: Sequence[Any], typed: Sequence[Typed]) -> InvalidParameter:
    """Which parts are of two kinds, in one line."""
    texts = [p for p, t in zip(parts, typed, strict=True) if t.sort == "text" and t.value is None]
    if texts and any(part.sort == "number" for part in typed):
        found = texts[0].unnest()
        name = f"column {found.name!r}" if isinstance(found, exp.Column) else shown(found.sql())
        return InvalidParameter(
            f"{name} is text and cannot be compared with a number; put the number in quotes"
        )
    sorts = dict.fromkeys(NAMES[part.sort] for part in typed if part.sort != "null")
    if list(sorts) in (["a whole number", "a number"], ["a number", "a whole number"]):
        return _refused(node, "compares whole numbers with a fraction; write a whole number")
    return _refused(
        node, f"needs operands of one kind; found {' and '.join(sorts)}; cast or quote one of them"
    )
