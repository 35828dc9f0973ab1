"""How large a query is with all that it names written where it is used. Counted before it is.

A common table expression that reads another twice doubles it: some lines of text can stand for
millions of parts. They are counted from the definitions, each once, by public texts alone.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from topsecret.sources.relations.catalogue import Catalogue
from topsecret.sources.relations.rebuild import parsed
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.sql.identifier_case import folded

MOST_PARTS = 20_000
"""Names, values and operations of a query; about a second's work."""
OF_A_COLUMN = 6
"""The parts that a column is written in."""
GROUPED = ("group", "having", "qualify")
COMPARED = ("expressions", "having", "qualify")
CTES = dict[str, tuple[Any, Any]]
Size = tuple[int, int]
"""The parts of a query, and its columns."""


def check_size(tree: Any, catalogue: Catalogue) -> None:
    """Refuse a query that is too large to be written out."""
    _Sizes(catalogue).of(tree, {})


class _Sizes:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[Any, Size] = {}
        self._views: list[Any] = []  # kept, so that no other tree has the identity of a part

    def of(self, query: Any, ctes: CTES) -> Size:
        """The size of a query, or of a part of one."""
        seen = _seen(query, ctes)
        grouped = any(query.args.get(name) for name in GROUPED)
        parts, read, stars = 1, 0, 0
        waiting = [
            (child, int(grouped and child.arg_key in COMPARED)) for child in _children(query)
        ]
        while waiting and parts <= MOST_PARTS:
            node, depth = waiting.pop()
            stars += isinstance(node, exp.Star | exp.Window)
            if isinstance(node, exp.Query | exp.Table):
                table = node if isinstance(node, exp.Table) else None
                more, columns = self.of(node, seen) if table is None else self._table(table, seen)
                parts, read = parts + more, read + columns
                if table is None:
                    continue
            # Each part of a grouped list, with all within it, is compared with what is grouped by.
            parts += 1 + depth
            waiting += [(child, depth + bool(depth)) for child in _children(node)]
        parts += OF_A_COLUMN * stars * read
        columns = len(query.expressions) + stars * read
        if parts > MOST_PARTS:
            raise QueryRefused(
                "text",
                f"the query has more than {MOST_PARTS} parts, counting a WITH or view wherever it "
                "is read; shorten it, or read it fewer times",
            )
        return parts, columns if isinstance(query, exp.Select) else read

    def _table(self, node: exp.Table, ctes: CTES) -> Size:
        names = tuple(part.name for part in node.parts)
        if len(names) == 1 and folded(names[0]) in ctes:
            one, seen = ctes[folded(names[0])]
            if id(one) not in self._known:
                self._known[id(one)] = self.of(one.this, seen)
            return self._known[id(one)]
        if names not in self._known:
            self._known[names] = 1, 1  # a view that reads itself is refused later
            self._known[names] = self._stored(names)
        return self._known[names]

    def _stored(self, names: tuple[str, ...]) -> Size:
        entry = self._catalogue.table(names)
        if entry is None:  # refused later, as is a view that cannot be read
            return 1, 1
        columns = len(entry.schema)
        if entry.definition is not None:
            try:
                tree = parsed(entry.definition, self._catalogue.dialect)
            except QueryRefused:
                return 1, 1
            self._views.append(tree)
            return self.of(tree, {})[0], columns
        return OF_A_COLUMN * columns, columns


def _children(node: Any) -> list[Any]:
    """What is counted with a node: not its WITH, of which what is used counts."""
    return [one for one in node.iter_expressions() if not isinstance(one, exp.With)]


def _seen(query: Any, ctes: CTES) -> CTES:
    """The common table expressions that a query can see, each with those before it."""
    clause = query.args.get("with_") or query.args.get("with")
    known = ctes
    for one in [] if clause is None else clause.expressions:
        known = {**known, folded(one.alias): (one, known)}
    return known
