"""Expressions of a DuckDB view as they stand there: none may fail on a row.

DuckDB casts on its own: ``text = 1`` makes a number of every row and fails on the first that is
none. A view is run as it is written, so its expressions must be of one kind without any cast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.sql.operand_types import Sort, Typed
from topsecret.sources.sql.safe_expressions import Total, mixed

Sorts = Mapping[str, Sort]
"""What the columns of a relation hold, by their names in small letters."""

NUMBERS = {"integer", "decimal", "float"}
JOINED = (exp.Concat, exp.DPipe)
UNCHECKED = (exp.Array, exp.Any, exp.Interval)
"""What no rule speaks of: it may stand by itself and be compared with nothing."""


class AsWritten(Total):
    """Judges expressions over these columns; what it rebuilds is thrown away."""

    def __init__(self, sorts: Sorts) -> None:
        super().__init__({}, "postgres")  # whose rules know no cast that tries
        self._sorts = sorts

    def typed(self, node: Any) -> Typed:
        """What an expression holds."""
        if isinstance(node, exp.Column):
            return Typed(node, self._sorts.get(node.name.casefold(), "other"))
        if isinstance(node, exp.Count) or _counts_rows(node):
            return Typed(node, "integer")
        if isinstance(node, exp.Min | exp.Max | exp.Collate):
            return Typed(node, self.typed(node.this).sort)
        if isinstance(node, JOINED):
            return Typed(node, "text")
        if isinstance(node, exp.Like):
            return Typed(node, "boolean")
        if isinstance(node, UNCHECKED):
            return Typed(node, "other")
        return super().typed(node)

    def _unified(self, node: Any, parts: Sequence[Any], compared: bool) -> tuple[Sort, list[Any]]:
        typed = [self.typed(part) for part in parts]
        days = [one for one in typed if one.sort == "date" and one.value is None]
        if days and any(one.sort == "timestamp" for one in typed):
            raise mixed(node, parts, typed)  # not every day has a time
        if any(one.sort == "other" for one in typed):
            parts = [p for p, t in zip(parts, typed, strict=True) if not _is_text_literal(t)]
        return super()._unified(node, parts, compared)

    def _cast(self, node: Any) -> Typed:
        """Which casts may stand in a view is said where views are analysed."""
        kinds = {"text": {"TEXT", "VARCHAR"}, "integer": {"INT", "BIGINT"}}
        name = node.args["to"].this.name
        sort = next((one for one, names in kinds.items() if name in names), name.lower())
        return Typed(node, sort if sort in {*kinds, "date", "boolean"} else "other")

    def output(self, expressions: Sequence[Any]) -> dict[str, Sort]:
        """What the columns of a select list hold."""
        held: dict[str, Sort] = {}
        for one in expressions:
            if one.is_star:
                held |= self._sorts
            else:
                held[one.alias_or_name.casefold()] = self.typed(one.unalias()).sort
        return {name: "float" if s == "number" else s for name, s in held.items()}


def merged(left: Sorts, right: Sorts) -> Sorts:
    """What the columns of a union hold, which have the names of the left side."""
    held: dict[str, Sort] = {}
    for (name, one), other in zip(left.items(), right.values(), strict=False):
        both = {one, other} - {"null"}
        held[name] = one if len(both) < 2 else "float" if both <= NUMBERS else "other"
    return held


def judged(node: Any, sorts: Sorts, *, condition: bool) -> str:
    """Why an expression may fail on a row; empty if it cannot."""
    try:
        judge = AsWritten(sorts)
        judge.truth(node) if condition else judge.typed(node)
    except InvalidParameter as error:
        return str(error)
    return ""


def _counts_rows(node: Any) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == "COUNT_STAR"


def _is_text_literal(part: Typed) -> bool:
    return part.sort == "text" and part.value is not None
