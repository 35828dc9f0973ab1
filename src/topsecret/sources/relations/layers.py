"""SELECTs around the counting one, which rename, sort, cut and filter by the count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from topsecret.sources.relations.caller_list import CallerList, whole_number
from topsecret.sources.relations.measure import Measure, measure_of, measures_in
from topsecret.sources.relations.public_rows import limit_of
from topsecret.sources.relations.rebuild import CTES, Rebuilder
from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.scope import conjuncts
from topsecret.sources.sql.identifier_case import folded

LAYER_PARTS = {"expressions", "from_", "from", "where", "order", "limit", "with_", "with"}


@dataclass(frozen=True, slots=True)
class Ordering:
    """How the list is cut."""

    k: int | None = None
    ordered: bool = False
    smallest: bool = False
    partition: Any = None
    """The column of which each value has a list of its own."""


class Layers:
    """Finds the counting SELECT and reads what stands around it."""

    def __init__(self, rebuilder: Rebuilder, node: exp.Select) -> None:
        self._outer: list[exp.Select] = []
        self._rebuilder = rebuilder
        self.counting: tuple[exp.Select, CTES] = self._find(node, {})

    def _find(self, node: exp.Select, ctes: CTES) -> tuple[exp.Select, CTES]:
        ctes = self._rebuilder.with_ctes(node, ctes)
        if node.args.get("group") is not None or measures_in(node):
            return node, ctes
        start = node.args.get("from_") or node.args.get("from")
        inner: Any = start.this if start is not None else None
        seen = ctes
        if inner is not None and inner.args.get("pivots"):
            raise QueryRefused("from", f"PIVOT in {quoted(inner)} is not supported; write GROUP BY")
        if isinstance(inner, exp.Subquery):
            _plain(inner, {"this", "alias"})
            inner = inner.this
        elif isinstance(inner, exp.Table) and folded(inner.name) in ctes and not inner.db:
            one, seen = ctes[folded(inner.name)]
            _plain(inner, {"this", "alias"})
            _plain(one, {"this", "alias"})
            inner = one.this
        else:
            inner = None
        if not isinstance(inner, exp.Select):
            raise QueryRefused(
                "rows",
                f"{quoted(node)} shows rows of people: it needs GROUP BY and COUNT(DISTINCT …)",
            )
        found = self._find(inner, seen)
        if node.args.get("joins"):
            joined = quoted(node.args["joins"][0])
            raise QueryRefused(
                "join-after", f"{joined}: a counted list cannot be joined; join before you count"
            )
        if node.args.get("offset") is not None:
            raise QueryRefused("offset", "OFFSET skips items that were paid for; leave it out")
        extra = [k for k, v in node.args.items() if v and k not in LAYER_PARTS]
        if extra:
            raise QueryRefused(
                "clause", f"{extra[0].upper()} around a counted list is not supported; leave it out"
            )
        self._outer.insert(0, node)
        return found

    def _names(self) -> dict[str, Any]:
        """What the counting SELECT calls its columns, by name."""
        counting, _ = self.counting
        return _by_name(counting.expressions)

    def _meant(self, node: Any, depth: int) -> Any:
        """The counting SELECT's expression that a column of a layer means."""
        node = node.unnest()
        if not isinstance(node, exp.Column):
            raise QueryRefused(
                "clause", f"{quoted(node)} around a counted list is not supported; leave it out"
            )
        layers = [] if depth == 0 else self._outer[len(self._outer) - depth].expressions
        if any(isinstance(one, exp.Star) for one in layers):
            return self._meant(node, depth - 1)
        names = self._names() if depth == 0 else _by_name(layers)
        if folded(node.name) not in names:
            raise QueryRefused(
                "column", f"there is no column {quoted(node)} in the counted list; check it"
            )
        found = names[folded(node.name)]
        return found if depth == 0 else self._meant(found, depth - 1)

    def _shown(self) -> list[Any]:
        """What the outermost list shows, in the counting SELECT's own expressions."""
        shown = list(self._names().values())
        for place, layer in enumerate(reversed(self._outer)):
            if not any(isinstance(one, exp.Star) for one in layer.expressions):
                shown = [self._meant(one.unalias(), place) for one in layer.expressions]
            elif len(layer.expressions) > 1 or any(layer.expressions[0].args.values()):
                raise QueryRefused(
                    "clause", "* beside others around a counted list is not supported; list columns"
                )
        return [one.unnest() for one in shown]

    def check_shown(self, items: set[str], listed: CallerList) -> None:
        """A list whose items are shown in part would name some of them twice."""
        if not self._outer:
            return
        shown = [one for one in self._shown() if not measures_in(one)]
        if {listed.canonical(one) for one in shown if not isinstance(one, exp.Window)} != items:
            raise QueryRefused(
                "clause", "around a counted list all of its items must be shown; add the rest"
            )

    def at_least(self) -> int | None:
        """N of ``WHERE n >= N`` in a layer."""
        least = None
        for place, layer in enumerate(reversed(self._outer)):
            where = layer.args.get("where")
            for part in [] if where is None else conjuncts(where.this):
                if self._is_rank(part, place):
                    continue
                value = _bound(part)
                meant = self._meant(part.this, place) if value is not None else None
                if value is None or not measures_in(meant) or isinstance(meant, exp.Window):
                    raise QueryRefused(
                        "having",
                        f"{quoted(part)} around a counted list is not supported; leave it out",
                    )
                least = value if least is None else max(least, value)
        return least

    def _is_rank(self, part: Any, place: int) -> bool:
        if not isinstance(part, exp.LTE | exp.LT | exp.EQ):
            return False
        return isinstance(self._meant(part.this, place), exp.Window)

    def ordering(self, inner: Ordering, measure: Measure, listed: CallerList) -> Ordering:
        """The counting SELECT's own order and cut, unless a layer has another."""
        found = inner
        for place, layer in enumerate(reversed(self._outer)):
            where = layer.args.get("where")
            for part in [] if where is None else conjuncts(where.this):
                if self._is_rank(part, place):
                    if found.k is not None:
                        raise QueryRefused("limit", "the list is cut twice; once is enough")
                    found = _ranked(self._meant(part.this, place), part, measure, listed)
            k = limit_of(layer)
            order = layer.args.get("order")
            if found.partition is not None:
                if k is not None:
                    raise QueryRefused(
                        "limit", "LIMIT around lists of groups is not supported; leave it out"
                    )
                continue
            if order is not None:
                found = replace(found, **self._sorted(order, place, measure, listed))
            if k is not None:
                if found.k is not None:
                    raise QueryRefused("limit", "the list is cut twice; once is enough")
                found = replace(found, k=k)
        return found

    def _sorted(
        self, order: Any, place: int, measure: Measure, listed: CallerList
    ) -> dict[str, Any]:
        first = order.expressions[0]
        meant = self._meant(first.this, place)
        if not measures_in(meant) or isinstance(meant, exp.Window):
            return {"ordered": False}
        return {"ordered": True, "smallest": not first.args.get("desc")}

    def shows_measure(self) -> bool:
        """Whether the result shows the counts."""
        return any(measures_in(one) and not isinstance(one, exp.Window) for one in self._shown())


def _by_name(listed: Sequence[Any]) -> dict[str, Any]:
    return {folded(one.alias_or_name): one.unalias() for one in listed}


def _plain(node: Any, known: set[str]) -> None:
    """Nothing but a name around a list: no sample, no other names of its columns."""
    alias = node.args.get("alias")
    extra = [name for name, value in node.args.items() if value and name not in known]
    if extra or (alias is not None and alias.args.get("columns")):
        raise QueryRefused(
            "clause", f"{quoted(node)} around a counted list is not supported; leave it out"
        )


def ordering(node: exp.Select, listed: CallerList, measure: Measure) -> Ordering:
    """ORDER BY, LIMIT and QUALIFY of the counting SELECT."""
    qualify = node.args.get("qualify")
    k = limit_of(node)
    if qualify is not None:
        if k is not None:
            raise QueryRefused(
                "limit", "LIMIT beside QUALIFY cuts the list twice; leave one of them out"
            )
        part = qualify.this.unnest()
        window = part.this.unnest() if isinstance(part, exp.Binary) else None
        if not isinstance(window, exp.Window):
            raise QueryRefused(
                "window", f"{quoted(qualify)} is not ROW_NUMBER() OVER (…) <= k; write it so"
            )
        return _ranked(window, part, measure, listed)
    order = node.args.get("order")
    if order is None:
        return Ordering(k)
    first = order.expressions[0]
    meant = _aliased(first.this, listed)
    ordered = bool(measures_in(meant))
    return Ordering(k, ordered, ordered and not first.args.get("desc"))


def _aliased(node: Any, listed: CallerList) -> Any:
    plain = node.unnest()
    place = whole_number(plain, "order")
    if place is not None:
        if not 1 <= place <= len(listed.shown):
            raise QueryRefused(
                "order", f"ORDER BY {place} names no column of the list; write its name"
            )
        return listed.shown[place - 1][1]
    if isinstance(plain, exp.Column) and not plain.table:
        for name, one in listed.shown:
            if folded(name) == folded(plain.name):
                return one
    return node


def _ranked(window: Any, part: Any, measure: Measure, listed: CallerList) -> Ordering:
    """ROW_NUMBER() OVER (PARTITION BY g ORDER BY n DESC) <= k."""
    number = part.expression.unnest()
    wrong = QueryRefused(
        "window",
        f"{quoted(part)} is not ROW_NUMBER() OVER (PARTITION BY group ORDER BY count DESC) <= k; "
        "write it so",
    )
    k = whole_number(number, "window")
    if k is None:
        raise wrong
    if isinstance(part, exp.LT):
        k -= 1
    elif (isinstance(part, exp.EQ) and k != 1) or not isinstance(part, exp.LTE | exp.EQ | exp.LT):
        raise wrong
    order, parts = window.args.get("order"), window.args.get("partition_by") or []
    if not isinstance(window.this, exp.RowNumber) or order is None or len(parts) > 1 or k < 1:
        raise wrong
    if window.args.get("spec") is not None:
        raise wrong
    first = order.expressions[0]
    meant = _aliased(first.this, listed)
    if not measures_in(meant) or measure_of(meant.unnest(), listed.scope, listed) != measure:
        raise wrong
    smallest = not first.args.get("desc")
    return Ordering(k, True, smallest, parts[0] if parts else None)


def at_least(having: Any, measure: Measure, listed: CallerList) -> int | None:
    """N of ``HAVING COUNT(DISTINCT person) >= N``."""
    if having is None:
        return None
    parts: Sequence[Any] = conjuncts(having.this)
    least = None
    for part in parts:
        value = _bound(part)
        meant: Any = _aliased(part.this, listed) if value is not None else None
        if value is None or not measures_in(meant):
            raise QueryRefused(
                "having", f"HAVING {quoted(part)} must be: the measure >= a number; write it so"
            )
        if measure_of(meant.unnest(), listed.scope, listed) != measure:
            raise QueryRefused(
                "two-measures",
                f"HAVING {quoted(part)} is about another measure; compare the one that ranks",
            )
        least = value if least is None else max(least, value)
    return least


def _bound(part: Any) -> int | None:
    if not isinstance(part, exp.GTE | exp.GT):
        return None
    number = whole_number(part.expression.unnest(), "having")
    return None if number is None else number + isinstance(part, exp.GT)
