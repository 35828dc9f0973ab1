"""What a query counts: persons, with the conditions that stand inside the count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from topsecret.sources.relations.aggregates import outermost
from topsecret.sources.relations.caller_list import AGGREGATES, CallerList
from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import PERSON
from topsecret.sources.relations.scope import Scope, tag_of


@dataclass(frozen=True, slots=True)
class Measure:
    """Distinct persons, perhaps of some of the rows only."""

    text: str
    """Equal for equal measures."""
    conditions: tuple[Any, ...] = ()
    rows: bool = False
    """Written COUNT(*): it must be shown that no person has two rows with one item."""


def measures_in(node: Any) -> list[Any]:
    """The aggregates of an expression, those that a window sorts by included."""
    if isinstance(node, exp.Window):
        order = node.args.get("order")
        return [] if order is None else measures_in(order)
    if isinstance(node, AGGREGATES):
        return [node]
    if not isinstance(node, exp.Expression) or isinstance(node, exp.Query):
        if not isinstance(node, exp.Select):
            return []
        return [m for one in node.expressions for m in outermost(one, AGGREGATES)]
    return [one for child in node.iter_expressions() for one in measures_in(child)]


def measure_of(node: Any, scope: Scope, listed: CallerList) -> Measure:
    """The measure that an aggregate is."""
    conditions: list[Any] = []
    inner = node
    if isinstance(inner, exp.Filter):
        conditions.append(inner.expression.this)
        inner = inner.this
    if isinstance(inner, exp.Avg):
        raise QueryRefused(
            "measure",
            f"{quoted(node)} cannot be ranked by: an average has no bounded change. Ask for "
            "COUNT(DISTINCT person), and for a sum apart",
        )
    if isinstance(inner, exp.ApproxDistinct):
        counted = inner.this
    elif isinstance(inner, exp.Count) and isinstance(inner.this, exp.Distinct):
        if len(inner.this.expressions) != 1 or inner.this.args.get("on"):
            raise QueryRefused("measure", f"{quoted(node)} must count one column")
        (counted,) = inner.this.expressions
    elif isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star):
        return Measure(_text(conditions, listed, "rows"), tuple(conditions), rows=True)
    else:
        raise QueryRefused(
            "measure", f"{quoted(node)} cannot be ranked by; write COUNT(DISTINCT person)"
        )
    plain = counted.unnest()
    if isinstance(plain, exp.Case):
        (branch, *more) = plain.args["ifs"]
        if more or plain.this is not None or plain.args.get("default") is not None:
            raise QueryRefused("measure", f"{quoted(node)}: CASE WHEN … THEN person END alone")
        conditions.append(branch.this)
        plain = branch.args["true"].unnest()
    if tag_of(plain, scope) != PERSON:
        raise QueryRefused(
            "not-person",
            f"{quoted(node)} does not count persons: write COUNT(DISTINCT person)",
        )
    if scope.find(plain) is not None:  # an outer join may leave the person out
        conditions.append(exp.not_(exp.Is(this=plain.copy(), expression=exp.null())))
    return Measure(_text(conditions, listed, "persons"), tuple(conditions))


def _text(conditions: list[Any], listed: CallerList, what: str) -> str:
    return " ".join([what, *(listed.canonical(one) for one in conditions)])
