"""What a query ranks by: people, rows or a sum, with the conditions that stand inside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.measures import Bound
from topsecret.sources.relations.aggregates import outermost
from topsecret.sources.relations.caller_list import AGGREGATES, CallerList
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import PERSON
from topsecret.sources.relations.scope import Expressions, Scope, tag_of
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.operand_types import Typed, is_whole_number

Kind = Literal["persons", "rows", "sum"]
BOUNDS: dict[Kind, str] = {"rows": "max_rows_per_item", "sum": "max_sum_per_item"}
"""Options that bound what one person adds to an item."""
UNIT = "unit"
FARTHEST = 10**9
"""The largest factor of a product."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Distinct people, rows or a sum, perhaps of some of the rows only."""

    kind: Kind
    text: str
    """Equal for equal measures."""
    written: str
    """As the caller writes it."""
    conditions: tuple[Any, ...] = ()
    amount: Any = None
    """What is summed."""

    @property
    def title(self) -> str:
        """What the receipt calls the amount."""
        plain = self.amount.unnest()
        return str(plain.name) if isinstance(plain, exp.Column) else quoted(plain)


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
    kind: Kind = "persons"
    counted: Any = None
    if isinstance(inner, exp.Avg):
        raise QueryRefused(
            "measure",
            f"{quoted(node)} cannot be ranked by: an average has no bounded change. Ask for "
            "COUNT(DISTINCT person), and for a sum in another query",
        )
    if isinstance(inner, exp.ApproxDistinct):
        counted = inner.this
    elif isinstance(inner, exp.Count) and isinstance(inner.this, exp.Distinct):
        if len(inner.this.expressions) != 1 or inner.this.args.get("on"):
            raise QueryRefused("measure", f"{quoted(node)} must count one column; name one")
        (counted,) = inner.this.expressions
    elif isinstance(inner, exp.Count) and not inner.expressions:
        kind, counted = "rows", inner.this
    elif isinstance(inner, exp.CountIf) and not isinstance(inner.this, exp.Distinct):
        conditions.append(inner.this)
        kind, counted = "rows", exp.Star()
    elif isinstance(inner, exp.Sum) and not isinstance(inner.this, exp.Distinct):
        kind, counted = "sum", inner.this
    else:
        raise QueryRefused(
            "measure", f"{quoted(node)} cannot be ranked by; write COUNT(DISTINCT person)"
        )
    plain = counted.unnest()
    if isinstance(plain, exp.Case | exp.If):
        condition, plain = _chosen(plain, kind, node)
        conditions += [] if condition is None else [condition]
    if kind == "sum" and _is(plain, "1"):  # a sum of ones counts the rows
        kind, plain = "rows", exp.Star()
    if kind == "persons" and tag_of(plain, scope) != PERSON:
        raise QueryRefused(
            "not-person",
            f"{quoted(node)} does not count people: write COUNT(DISTINCT person), or COUNT(*) "
            "for rows",
        )
    own = isinstance(plain, exp.Column) and scope.find(plain) is None
    if kind != "sum" and not own and not isinstance(plain, exp.Star | exp.Literal | exp.Boolean):
        # Rows without a value are not counted; an outer join may leave the person out.
        conditions.append(exp.not_(exp.Is(this=plain.copy(), expression=exp.null())))
    parts = [kind, *(listed.canonical(one) for one in conditions)]
    if kind == "sum":
        parts.append(listed.canonical(plain))
    amount = plain if kind == "sum" else None
    return Measure(kind, " ".join(parts), quoted(node), tuple(conditions), amount)


def amount_of(node: Any, expressions: Expressions, dialect: str) -> Typed:
    """What a row adds: a number, or the product of two.

    Factors beyond ±10⁹ count as that, so that no product overflows.
    """
    plain = node.unnest()
    if not isinstance(plain, exp.Mul):
        return expressions.typed(plain)
    typed = [expressions.typed(part.unnest()) for part in (plain.this, plain.expression)]
    sorts = {"integer" if one.sort == "number" else one.sort for one in typed}
    fractions = any(one.sort == "number" and not is_whole_number(one.value) for one in typed)
    if not sorts <= {"integer", "decimal", "float"} or fractions:
        return Typed(plain, "other")
    if dialect == "postgres" and "float" in sorts:
        raise QueryRefused("measure", f"{quoted(node)} may underflow; cast the float to an integer")
    factors = [_within(one.node) for one in typed]
    if sorts == {"integer"}:
        factors = [exp.cast(one, "BIGINT") for one in factors]
    elif "float" in sorts:
        factors = [exp.cast(one, "DOUBLE") for one in factors]
    sort = "float" if "float" in sorts else "decimal" if "decimal" in sorts else "integer"
    return Typed(exp.Mul(this=factors[0], expression=factors[1]), sort)


def _within(value: Any) -> exp.Expression:
    """The value, or the end of ±10⁹ that it is beyond."""
    high, low = exp.Literal.number(FARTHEST), exp.Neg(this=exp.Literal.number(FARTHEST))
    above = exp.GT(this=value.copy(), expression=high.copy())
    below = exp.LT(this=value.copy(), expression=low.copy())
    return exp.case().when(above, high).when(below, low).else_(value.copy())


def bound_of(
    measure: Measure, options: dict[str, str], file: PrivacyFile, bounded: bool
) -> Bound | None:
    """How much one person adds to an item, by the query's options or by the privacy file.

    None where the caller has a bound beside the query, and for people.
    """
    name = BOUNDS.get(measure.kind, "")
    known = {name, UNIT} if measure.kind == "sum" and name in options else {name}
    unused = [one for one in (*BOUNDS.values(), UNIT) if one in options and one not in known]
    if unused:
        raise QueryRefused("options", f"{unused[0]} does not bound {measure.written}; leave it out")
    if measure.kind == "persons":
        return None
    if bounded:
        if name in options:
            raise InvalidParameter("max_per_item is given twice, in the query and beside it")
        return None
    if name in options:
        return Bound(options[name], options.get(UNIT, "1"))
    held = file.bounds.get("" if measure.kind == "rows" else folded(measure.title))
    if held is None:
        rows = measure.kind == "rows"
        what = "one person may have any number of rows" if rows else "one person may add any amount"
        raise QueryRefused(
            "count-rows" if rows else "sum",
            f"{measure.written} needs a bound, for {what}: pass max_per_item, write "
            f"OPTIONS({name} = 5), or count COUNT(DISTINCT person)",
        )
    return held


def _chosen(case: Any, kind: Kind, node: Any) -> tuple[Any, Any]:
    """The condition of CASE WHEN … THEN value END and the value, where nothing else counts."""
    branches, default, base = case.args.get("ifs"), case.args.get("default"), case.this
    if isinstance(case, exp.If):
        branches, default, base = [case], case.args.get("false"), None
    nothing = default is None or isinstance(default.unnest(), exp.Null)
    nothing = nothing or (kind == "sum" and _is(default.unnest(), "0"))
    if len(branches) == 1 and base is None and nothing:
        return branches[0].this, branches[0].args["true"].unnest()
    if kind == "sum":
        return None, case
    raise QueryRefused("measure", f"{quoted(node)}: write CASE WHEN … THEN value END alone")


def _is(node: Any, number: str) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.this == number
