"""Expressions of a view as they stand there: none may fail on a row, on any engine.

A view is run as it is written, so nothing can be rebuilt around its expressions: a short list says
which of them no row can make fail, from the kinds of their parts. What is not on it is refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.sql.expressions import COMPARISONS, shown
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.operand_types import CASTS, TRIED
from topsecret.sources.sql.safe_expressions import FARTHEST, LONGEST_JOINED
from topsecret.sources.sql.view_columns import EXACT, KINDS, MOMENT, Sort, counts_rows, is_identical

LARGEST_INTEGER = 2**63 - 1
MOST_DIGITS = 15
"""At most so many digits of a number beside floats or decimals."""

LONGEST_PATTERN = 1_000
TEXTS = {exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR}
INTEGERS = {
    exp.DataType.Type.TINYINT: 7,
    exp.DataType.Type.SMALLINT: 15,
    exp.DataType.Type.INT: 31,
    exp.DataType.Type.BIGINT: 63,
}
"""Their bits, the sign not counted."""

WRITTEN = re.compile(r"-?[0-9]+(\.[0-9]+)?")
"""A number that every engine reads: Python knows digits of other scripts, and underscores."""

WIDE = {exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT, exp.DataType.Type.DECIMAL}
SHORT = KINDS - {"text"} | {"float", "number", "null"}
"""Kinds whose texts are short."""


@dataclass(frozen=True, slots=True)
class Part:
    """What an expression holds, and its value if it is a literal."""

    sort: Sort
    value: Any = None


class Judge:
    """Judges the expressions of one select over the columns of its table."""

    def __init__(self, sorts: Mapping[str, Sort], dialect: str) -> None:
        self._sorts = sorts
        self._dialect = dialect
        self._lax = dialect == "sqlite"  # which compares and casts whatever there is

    def sort(self, node: Any) -> Sort:
        """What an expression holds as a column, or an error that says why it may fail."""
        part = self.part(node)
        return self._joint(node, [part], compared=False) if part.sort == "number" else part.sort

    def truth(self, node: Any) -> None:
        """An error, unless the expression is a condition that cannot fail."""
        if self.part(node).sort not in {"boolean", "null"} and not self._lax:
            raise _refused(node, "is not a truth value")

    def part(self, node: Any) -> Part:
        """What an expression holds, or an error that says why it may fail on a row."""
        for kinds, rule in self._RULES:
            if isinstance(node, kinds):
                found: Part = rule(self, node)
                return found
        if counts_rows(node):
            return Part("integer")
        raise _refused(node, "is not known to be safe on every row")

    def _column(self, node: Any) -> Part:
        if folded(node.name) not in self._sorts:
            raise _refused(node, "is no column of its table")
        sort = self._sorts[folded(node.name)]
        return Part("other" if sort == "null" else sort)

    def _literal(self, node: Any) -> Part:
        _only(node, "this", "is_string")
        if node.is_string:
            return Part("text", node.this)
        with suppress(InvalidOperation):
            return Part("number", Decimal(node.this))
        raise _refused(node, "is not a number that every engine reads")

    def _negative(self, node: Any) -> Part:
        part = self.part(node.this)
        if part.sort != "number":
            raise _refused(node, "may overflow; only a literal may have a minus")
        return Part("number", -part.value)

    def _connected(self, node: Any) -> Part:
        for one in node.flatten():
            self.truth(one)
        return Part("boolean")

    def _not(self, node: Any) -> Part:
        self.truth(node.this)
        return Part("boolean")

    def _compared(self, node: Any) -> Part:
        _only(node, "this", "expression", "expressions", "low", "high", "negate")
        others = [node.args.get(name) for name in ("expression", "low", "high")]
        listed = [one for other in others if other is not None for one in _listed(other)]
        self._unified(node, [node.this, *listed, *node.expressions], compared=True)
        return Part("boolean")

    def _is(self, node: Any) -> Part:
        _only(node, "this", "expression", "negate")
        if isinstance(node.expression, exp.Boolean):
            self.truth(node.this)
        elif isinstance(node.expression, exp.Null):
            self.part(node.this)
        else:
            raise _refused(node, "is not known to be safe on every row; write IS NULL")
        return Part("boolean")

    def _like(self, node: Any) -> Part:
        _only(node, "this", "expression", "negate")
        pattern = self.part(node.expression)
        if pattern.sort != "text" or pattern.value is None or "\\" in pattern.value:
            raise _refused(node, "needs a literal pattern without a backslash")
        if len(pattern.value) > LONGEST_PATTERN:
            raise _refused(node, "has a pattern that is too long")
        self._text(node.this)
        return Part("boolean")

    def _case(self, node: Any) -> Part:
        _only(node, "this", "ifs", "default", "true", "false")
        is_if = isinstance(node, exp.If)
        branches = [node] if is_if else node.args["ifs"]
        default = node.args.get("false" if is_if else "default")
        tests = [branch.this for branch in branches]
        if not is_if and node.this:
            self._unified(node, [node.this, *tests], compared=True)
        else:
            for test in tests:
                self.truth(test)
        results = [branch.args["true"] for branch in branches]
        return Part(self._unified(node, [*results, default or exp.null()], compared=False))

    def _first(self, node: Any) -> Part:
        _only(node, "this", "expression", "expressions", "is_nvl", "is_null")
        others = [node.expression] if isinstance(node, exp.Nullif) else node.expressions
        compared = isinstance(node, exp.Nullif)
        return Part(self._unified(node, [node.this, *others], compared=compared))

    def _joined(self, node: Any) -> Part:
        _only(node, "this", "expression", "expressions", "safe", "coalesce")
        for one in node.expressions or [node.this, node.expression]:
            self._text(one)
            if not self._is_short(one):
                raise _refused(
                    node,
                    "may make a text that is too long; cut its parts, say: "
                    f"SUBSTR({shown(one.sql())}, 1, 1000)",
                )
        return Part("text")

    def _is_short(self, node: Any) -> bool:
        """Whether a text has a bound, so that others may be joined to it."""
        if isinstance(node, exp.Substring):
            return (
                node.args.get("length") is not None
                and self.part(node.args["length"]).value <= LONGEST_JOINED
            )
        if isinstance(node, exp.Column):
            return self.part(node).sort in SHORT
        parts = [one for one in node.iter_expressions() if not isinstance(one, exp.DataType)]
        return all(self._is_short(one) for one in parts)

    def _changed(self, node: Any) -> Part:
        _only(node, "this")
        sort = self._text(node.this)
        return Part("integer" if isinstance(node, exp.Length) else sort)

    def _trim(self, node: Any) -> Part:
        _only(node, "this", "expression", "position")
        removed = node.args.get("expression")
        if removed is not None and not self.part(removed).value:
            raise _refused(node, "may trim the characters of a literal only")
        return Part(self._text(node.this))

    def _substring(self, node: Any) -> Part:
        _only(node, "this", "start", "length")
        for name in ("start", "length"):
            if node.args.get(name) is None and name == "length":
                continue
            place = self.part(node.args.get(name))
            number = place.value
            if place.sort != "number" or not 0 <= number <= FARTHEST or number % 1:
                raise _refused(node, "needs places that are literals, 0 or more")
        return Part(self._text(node.this))

    def _cast(self, node: Any) -> Part:
        _only(node, "this", "to", "safe")
        part, to = self.part(node.this), node.args["to"]
        found = self._cast_part(part, to, isinstance(node, exp.TryCast))
        if found is None:
            raise _refused(node, "is a cast that may fail on one person's row")
        return found

    def _cast_part(self, part: Part, to: Any, tried: bool) -> Part | None:
        given, literal = part.sort, part.value is not None
        if to.this in TEXTS:
            if given == "text" or given.startswith(f"{EXACT}text"):
                return Part(given, None if to.expressions else part.value)
            if self._lax:
                return Part("other" if given == "other" else "text")
            first_day = given == "timestamp" and self._dialect == "duckdb"  # it has no text
            total = given in {*KINDS, "number", "null", "float", "decimal"} and not first_day
            exact = given.startswith((EXACT, "type DECIMAL(")) and given != MOMENT
            return Part("text") if total or exact else None
        if to.expressions:
            return None
        kind = CASTS.get(to.this, ("",))[0]
        if literal and given == "text" and kind in {"date", "timestamp"}:
            return _dated(part.value, kind)
        if literal and given == "text" and to.this == exp.DataType.Type.TIMESTAMPTZ:
            postgres = self._dialect == "postgres"  # whose views hold the moment itself
            return Part(MOMENT) if postgres and _dated(part.value, MOMENT) else None
        wide = to.this in WIDE and (kind == "float" or self._dialect == "postgres")
        if literal and given in {"text", "number"} and (wide or to.this in INTEGERS):
            if not WRITTEN.fullmatch(str(part.value)):
                return None
            number, bits = Decimal(str(part.value)), INTEGERS.get(to.this, 0)
            fits = _fits(number) and -(2**bits) <= number < 2**bits
            return Part("number", number) if fits or (wide and abs(number) < 10**30) else None
        if self._dialect == "duckdb" and tried and kind:
            return Part(kind) if given in TRIED[kind] else None
        if given == "integer" and to.this == exp.DataType.Type.BIGINT and not self._lax:
            return part
        if self._dialect == "postgres" and (given, kind) == ("timestamp", "date"):
            return Part(kind)
        return None

    def _count(self, node: Any) -> Part:
        counted = node.this
        if isinstance(counted, exp.Distinct):
            _only(counted, "expressions")
            for one in counted.expressions:
                self._identical(node, one)
        elif not isinstance(counted, exp.Star):
            self.part(counted)
        _only(node, "this", "big_int")
        return Part("integer")

    def _extreme(self, node: Any) -> Part:
        _only(node, "this")
        return Part(self._identical(node, node.this))

    def _identical(self, node: Any, one: Any) -> Sort:
        sort = self.sort(one)
        if not is_identical(sort):
            raise _refused(node, f"takes values for one that are not identical: {shown(one.sql())}")
        return sort

    def _collated(self, node: Any) -> Part:
        if self._dialect == "sqlite":  # it goes along through || and CASE
            raise _refused(node, "may take different texts for one")
        self._text(node.this)
        return Part("other")

    def _text(self, node: Any) -> Sort:
        part = self.part(node)
        if self._lax:
            return part.sort if part.sort in {"text", "other"} else "any"
        if part.sort not in {"text", "null"}:
            raise _refused(node, "must be text, and of the database's own collation")
        return "text"

    def _unified(self, node: Any, nodes: Sequence[Any], *, compared: bool) -> Sort:
        return self._joint(node, [self.part(one) for one in nodes], compared=compared)

    def _joint(self, node: Any, parts: Sequence[Part], *, compared: bool) -> Sort:
        """The one sort of these parts."""
        numbers = [part.value for part in parts if part.sort == "number"]
        sorts = {part.sort for part in parts} - {"null", "number"}
        whole = all(_fits(number) for number in numbers)
        if self._lax:
            sorts |= ({"integer"} if whole else {"any"}) if numbers else set()
            return next(iter(sorts)) if len(sorts) == 1 else "other" if "other" in sorts else "any"
        if not sorts:
            return ("integer" if whole else "other") if numbers else "null"
        if len(sorts) == 1:
            (sort,) = sorts
            short = all(_is_short_number(number) for number in numbers)
            beside = sort == "float" or (sort == "decimal" and self._dialect == "postgres")
            if (whole and sort == "integer") or (short and beside):
                return sort
            known = sort in KINDS or (sort != "other" if not compared else is_identical(sort))
            if not numbers and known:
                return sort
        dates = [part for part in parts if part.sort in {"date", "text"}]
        for sort in ("timestamp", "date"):
            if sort in sorts and sorts <= {"timestamp", "date", "text"} and not numbers:
                others = [part for part in dates if part.sort != sort]
                if compared and all(_is_dated(part, sort) for part in others):
                    return sort
                break
        raise _refused(node, "needs operands of one kind, which are compared without a cast")

    _RULES: tuple[tuple[Any, Any], ...] = (
        (exp.Column, _column),
        (exp.Literal, _literal),
        (exp.Boolean, lambda _, node: Part("boolean", bool(node.this))),
        (exp.Null, lambda _, __: Part("null")),
        (exp.Neg, _negative),
        (exp.Paren, lambda self, node: self.part(node.this)),
        ((exp.And, exp.Or), _connected),
        (exp.Not, _not),
        ((*COMPARISONS, exp.Between, exp.In), _compared),
        (exp.Is, _is),
        (exp.Like, _like),
        ((exp.Case, exp.If), _case),
        ((exp.Coalesce, exp.Nullif), _first),
        ((exp.Concat, exp.DPipe), _joined),
        ((exp.Lower, exp.Upper, exp.Length), _changed),
        (exp.Trim, _trim),
        (exp.Substring, _substring),
        ((exp.Cast, exp.TryCast), _cast),
        (exp.Count, _count),
        ((exp.Min, exp.Max), _extreme),
        (exp.Collate, _collated),
    )


def _listed(node: Any) -> Iterable[Any]:
    """The elements of ``= ANY (ARRAY[…])`` and ``<> ALL (ARRAY[…])``, as PostgreSQL writes IN."""
    if isinstance(node, exp.Any):
        inner = node.this
    elif isinstance(node, exp.Anonymous) and node.name.upper() == "ALL":
        inner = node.expressions[0]
    else:
        return [node]
    array = inner.unnest()
    if isinstance(array, exp.Cast) and array.to.this == exp.DataType.Type.ARRAY:
        held = array.to.expressions
        array = array.this.unnest() if held and held[0].this in TEXTS else array
    return list(array.expressions) if isinstance(array, exp.Array) else [node]


def _dated(text: str, kind: str) -> Part | None:
    """A day or time that every engine reads: Python knows more ways to write one."""
    with suppress(ValueError):
        if kind == "date":
            day = datetime.date.fromisoformat(text)
            return Part(kind, day) if text == day.isoformat() else None
        time = datetime.datetime.fromisoformat(text)
        usual = kind == MOMENT or text.replace(" ", "T") == time.isoformat()
        return Part(kind, time) if usual and (time.tzinfo is None) == (kind != MOMENT) else None
    return None


def _is_dated(part: Part, kind: str) -> bool:
    """Whether a literal may stand beside a date or a time: it alone is cast."""
    if part.sort == "text":
        return part.value is not None and _dated(part.value, kind) is not None
    return part.value is not None and kind == "timestamp"


def _fits(number: Decimal) -> bool:
    """A whole number of 64 bits, written as one: 1.000 makes decimals of what it stands beside.

    >>> _fits(Decimal("5")), _fits(Decimal("5.0")), _fits(Decimal(2) ** 63)
    (True, False, False)
    """
    return abs(number) <= LARGEST_INTEGER and int(number.as_tuple().exponent) >= 0


def _is_short_number(number: Decimal) -> bool:
    return len(number.as_tuple().digits) <= MOST_DIGITS and abs(number.adjusted()) <= MOST_DIGITS


def _only(node: Any, *names: str) -> None:
    """Options that nobody has thought about are refused."""
    if any(value for name, value in node.args.items() if name not in names):
        raise _refused(node, "is not known to be safe on every row")


def _refused(node: Any, why: str) -> InvalidParameter:
    return InvalidParameter(f"{shown(node.sql())} {why}")
