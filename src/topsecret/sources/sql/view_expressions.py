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
from topsecret.sources.sql.safe_expressions import CASTS, Total, mixed

Sorts = Mapping[str, Sort]
"""What the columns of a relation hold, by their names in small letters."""

NUMBERS = {"integer", "decimal", "float"}
JOINED = (exp.Concat, exp.DPipe)
MADE = (
    *JOINED,
    exp.Like,
    exp.Count,
    exp.Distinct,
    exp.Min,
    exp.Max,
    exp.Collate,
    exp.Array,
    exp.Any,
    exp.Interval,
    exp.Tuple,
)
"""What the rules of expressions for every engine do not speak of, or speak of otherwise."""


class AsWritten(Total):
    """Judges expressions over these columns; what it rebuilds is thrown away."""

    def __init__(self, sorts: Sorts) -> None:
        super().__init__({}, "postgres")  # whose rules know no cast that tries
        self._sorts = sorts

    def typed(self, node: Any) -> Typed:
        """What an expression holds."""
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return Typed(node, self._sorts.get(node.name.casefold(), "other"))
        if isinstance(node, exp.Star) or _counts_rows(node):
            return Typed(node, "integer")
        if isinstance(node, MADE):  # whose parts may be of any kind, and none of them may fail
            sorts = [self.typed(part).sort for part in node.iter_expressions()]
            return Typed(node, _made(node, sorts))
        if isinstance(node, exp.Cast | exp.TryCast):
            part, to = self.typed(node.this), node.args["to"].this
            return Typed(node, CASTS[to][0] if to in CASTS else "other", part.value)
        return super().typed(node)

    def _unified(self, node: Any, parts: Sequence[Any], compared: bool) -> tuple[Sort, list[Any]]:
        typed = [self.typed(part) for part in parts]
        days = [one for one in typed if one.sort == "date" and one.value is None]
        if days and any(one.sort == "timestamp" for one in typed):
            raise mixed(node, parts, typed)  # not every day has a time
        if any(one.sort == "other" for one in typed):
            parts = [p for p, t in zip(parts, typed, strict=True) if not _is_text_literal(t)]
        return super()._unified(node, parts, compared)

    def output(self, expressions: Sequence[Any]) -> dict[str, Sort]:
        """What the columns of a select list hold."""
        held: dict[str, Sort] = {}
        for one in expressions:
            if one.is_star:
                held |= self._sorts
                held |= self.output(replaced(one))
            else:
                held[one.alias_or_name.casefold()] = self.typed(one.unalias()).sort
        return {name: "float" if s == "number" else s for name, s in held.items()}


def replaced(star: Any) -> list[Any]:
    """The expressions of ``* REPLACE (…)``."""
    plain = star.this if isinstance(star, exp.Column) else star
    return list(plain.args.get("replace") or [])


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


def _made(node: Any, sorts: Sequence[Sort]) -> Sort:
    """What such a part holds; ``other`` may be compared with nothing."""
    if isinstance(node, JOINED):
        return "text"
    if isinstance(node, exp.Like):
        return "boolean"
    if isinstance(node, exp.Count):
        return "integer"
    kept = isinstance(node, exp.Min | exp.Max | exp.Collate) and sorts
    return sorts[0] if kept else "other"


def _counts_rows(node: Any) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == "COUNT_STAR"


def _is_text_literal(part: Typed) -> bool:
    return part.sort == "text" and part.value is not None
