"""How large a query is with all that it names written where it is used. Counted before it is.

A common table expression that reads another twice doubles it: some lines of text can stand for
millions of parts. They are counted from the definitions, each once, by public texts alone.

So is how many tables with people's rows are joined: each self-join by the person multiplies a
person's rows by their number, and a short text could keep an engine busy for ever.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sqlglot import exp

from topsecret.sources.relations.catalogue import Catalogue
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.rebuild import parsed
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.sql.identifier_case import folded

MOST_PARTS = 20_000
"""Names, values and operations of a query; about a second's work."""
MOST_JOINED = 8
"""How many private tables a query may join; usual queries join up to three."""
OF_A_COLUMN = 6
"""The parts that a column is written in."""
GROUPED = ("group", "having", "qualify")
COMPARED = ("expressions", "having", "qualify")
CTES = dict[str, tuple[Any, Any]]
Size = tuple[int, int, int]
"""The parts of a query, its columns, and how many private tables it joins."""


def check_size(tree: Any, catalogue: Catalogue, file: PrivacyFile) -> None:
    """Refuse a query that is too large to be written out, or joins too many private tables."""
    _, _, joined = _Sizes(catalogue, file).of(tree, {})
    if joined > MOST_JOINED:
        raise QueryRefused(
            "text",
            f"the query joins {joined} private tables, where a self-join, a sub-query and each "
            f"reading of a WITH or view count, and may join {MOST_JOINED}; join fewer of them",
        )


class _Sizes:
    def __init__(self, catalogue: Catalogue, file: PrivacyFile) -> None:
        self._catalogue, self._file = catalogue, file
        self._known: dict[Any, Size] = {}
        self._views: list[Any] = []  # kept, so that no other tree has the identity of a part

    def of(self, query: Any, ctes: CTES) -> Size:
        """The size of a query, or of a part of one."""
        seen = _seen(query, ctes)
        grouped = any(query.args.get(name) for name in GROUPED)
        apart = isinstance(query, exp.SetOperation)
        parts, read, stars, joined = 1, 0, 0, 0
        waiting = [
            (child, int(grouped and child.arg_key in COMPARED)) for child in _children(query)
        ]
        while waiting and parts <= MOST_PARTS:
            node, depth = waiting.pop()
            stars += isinstance(node, exp.Star | exp.Window)
            if isinstance(node, exp.Query | exp.Table):
                table = node if isinstance(node, exp.Table) else None
                size = self.of(node, seen) if table is None else self._table(table, seen)
                parts, read = parts + size[0], read + size[1]
                # The rows of a UNION stand one after the other: nobody's are multiplied.
                joined = max(joined, size[2]) if apart else joined + size[2]
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
        return parts, columns if isinstance(query, exp.Select) else read, joined

    def _table(self, node: exp.Table, ctes: CTES) -> Size:
        names = tuple(part.name for part in node.parts)
        if len(names) == 1 and folded(names[0]) in ctes:
            one, seen = ctes[folded(names[0])]
            if id(one) not in self._known:
                self._known[id(one)] = self.of(one.this, seen)
            return self._known[id(one)]
        if names not in self._known:
            self._known[names] = 1, 1, 0  # a view that reads itself is refused later
            self._known[names] = self._stored(names)
        return self._known[names]

    def _stored(self, names: tuple[str, ...]) -> Size:
        entry = self._catalogue.table(names)
        if entry is None:  # refused later, as is a view that cannot be read
            return 1, 1, 0
        columns = len(entry.schema)
        if entry.definition is not None:
            try:
                tree = parsed(entry.definition, self._catalogue.dialect)
            except QueryRefused:
                return 1, 1, 0
            self._views.append(tree)
            parts, _, joined = self.of(tree, {})
            return parts, columns, joined
        return OF_A_COLUMN * columns, columns, int(entry.parts in self._private)

    @cached_property
    def _private(self) -> set[tuple[str, ...]]:
        """The tables with people's rows, by their whole names."""
        rules = self._file.tables.items()
        private = [tuple(name.split(".")) for name, rule in rules if not rule.public]
        return {entry.parts for name in private if (entry := self._catalogue.table(name))}


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
