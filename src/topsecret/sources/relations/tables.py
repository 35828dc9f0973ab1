"""The leaves of a rebuilt tree: tables with their owners, as the privacy file says.

A person column is the owner. A link to a person column is the owner, too. Any other link joins the
parent: the owner of a row is the owner of the parent's row. Where the engine does not keep the
parent's key unique, a row belongs to every owner of its key.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from topsecret.sources.relations.catalogue import Catalogue, TableEntry
from topsecret.sources.relations.privacy_file import Link, PrivacyFile, TableRule
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.relations.relation import (
    PERSON,
    Linked,
    Names,
    Relation,
    RelationColumn,
    Tag,
    as_source,
    owner,
    projected,
)
from topsecret.sources.source import Columns
from topsecret.sources.sql.dialects import as_text, counted, person
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.operand_types import Typed, column_of
from topsecret.sources.sql.statements import EVENTS, column, person_of, table

KEY = "key"
"""The hidden column of a parent table that links compare."""


class Tables:
    """The tables that the privacy file names, found in a catalogue."""

    def __init__(self, file: PrivacyFile, catalogue: Catalogue, names: Names) -> None:
        self._file = file
        self._catalogue = catalogue
        self._names = names
        self._dialect = catalogue.dialect
        self._native: bool | None = None
        self.shared_rows = False
        """Whether a table was read whose rows may belong to several people."""

    def leaf(self, entry: TableEntry, key: str | None = None) -> Relation:
        """The table with its owner, every column in a form that compares by code point.

        ``key`` adds a column of that name's values, as links compare them.
        """
        name, rule = self.rule(entry)
        if entry.refused is not None:
            raise QueryRefused(
                "table", f"the table {entry.parts[-1]!r} {entry.refused}; use another"
            )
        if rule.public and entry.shares_rows:
            raise QueryRefused(
                "table",
                f"the table {entry.parts[-1]!r} is a partition, or has some: what is public must "
                "share no rows with other tables; name its person",
            )
        columns = [self._column(entry, name, rule, place) for place in enumerate(entry.schema)]
        shown = [(typed.node, out.ident) for typed, out in columns]
        outs = tuple(out for _, out in columns)
        if key is not None:
            shown.append((self._compared(entry, key), KEY))
        held = table(*entry.parts) if entry.relation is None else entry.relation.copy()
        source: Any = exp.alias_(held, EVENTS, table=True, quoted=True)
        if rule.public:
            return Relation(projected(source, shown, None), outs, private=False)
        if rule.person is not None or (rule.link is not None and self._links_to_person(rule.link)):
            holder = rule.person if rule.person is not None else rule.link.column  # type: ignore[union-attr]
            own = self._owner(entry, holder)
            select = projected(source, shown, own)
            present = exp.not_(exp.Is(this=column(holder, EVENTS), expression=exp.null()))
            # One row for each person, where the engine keeps their column unique.
            alone = frozenset[str]() if self._exact(entry, holder) in entry.unique else None
            return Relation(select.where(present), outs, private=True, unique=alone)
        assert rule.link is not None
        return self._linked(entry, rule.link, source, shown, outs)

    def rule(self, entry: TableEntry) -> tuple[str, TableRule]:
        """What the privacy file calls this very table and says of it.

        A table of the same name in another schema, or of another case, is another table.
        """
        names = [
            name
            for name in self._file.tables
            if (meant := self._catalogue.table(tuple(name.split(".")))) is not None
            and meant.parts == entry.parts
        ]
        if len(names) == 1:
            return names[0], self._file.tables[names[0]]
        if names:
            raise QueryRefused(
                "table", f"{' and '.join(names)} of the privacy file are one table; keep one name"
            )
        raise QueryRefused(
            "unknown-table",
            f"the table {entry.parts[-1]!r} is not in the privacy file; its owner must say "
            "whose rows it holds",
        )

    def _linked(
        self,
        entry: TableEntry,
        link: Link,
        source: Any,
        shown: list[tuple[exp.Expression, str]],
        outs: tuple[RelationColumn, ...],
    ) -> Relation:
        parent_entry = self._entry(link.parent)
        key, linking = self._exact(parent_entry, link.key), self._exact(entry, link.column)
        kinds = {entry.schema[linking], parent_entry.schema[key]}
        if len(kinds) > 1 or kinds & {"float", "decimal"}:
            raise QueryRefused(
                "link",
                f"{entry.parts[-1]}.{linking} and {parent_entry.parts[-1]}.{key} must be of one "
                "type without fractions to be linked; change one of them",
            )
        parent = self.leaf(parent_entry, key)
        alias = self._names.alias()
        inner = self._names.alias()
        unique = key in parent_entry.unique and not parent.shared_keys
        keys = owned_keys(as_source(parent, inner), column(KEY, inner), owner(inner))
        # Every pair stands once by itself; SQLite indexes them only if they are made distinct.
        if unique and self._dialect != "sqlite":
            keys.set("distinct", None)
        here, there = self._compared(entry, linking), column(KEY, alias)
        joined = projected(source, shown, owner(alias)).join(
            exp.alias_(keys.subquery(), alias, table=True, quoted=True),
            on=exp.EQ(this=here, expression=there),
            join_type="inner",
        )
        self.shared_rows = self.shared_rows or not unique
        linked = None
        if kinds == {"integer"} and self._dialect != "sqlite":  # the query's = is the link's
            (mine,) = [out.ident for out in outs if out.name == linking]
            (theirs,) = [out.ident for out in parent.columns if out.name == key]
            linked = Linked(projected(source, shown, None), mine, link.parent, theirs)
        return Relation(joined, outs, private=True, shared_keys=not unique, linked=linked)

    def _compared(self, entry: TableEntry, name: str) -> exp.Expression:
        """The value of a key, equal for identical values alone."""
        kind = entry.schema[name]
        if isinstance(entry.schema, Columns) and name in entry.schema.unclear:
            raise QueryRefused(
                "person-type",
                f"the key {name!r} of {entry.parts[-1]!r} is of a type whose values may be written "
                "alike; use text or whole numbers",
            )
        value = person(column(name, EVENTS), kind, self._dialect)
        return value if kind == "integer" else as_text(value, self._dialect)

    def _column(
        self, entry: TableEntry, name: str, rule: TableRule, place: tuple[int, str]
    ) -> tuple[Typed, RelationColumn]:
        number, held = place
        kind = entry.schema[held]
        typed = column_of(held, kind, self._dialect)
        if self._dialect == "sqlite" and kind in {"integer", "boolean", "date", "timestamp"}:
            # SQLite keeps whatever was written: a cast makes one kind of it, row by row.
            raw = column(held, EVENTS)
            if kind in {"date", "timestamp"}:
                typed = Typed(as_text(raw, "sqlite"), "text")
            else:
                typed = Typed(counted(raw, kind, "sqlite"), kind)
        tag = self._tag(entry, name, rule, held)
        others = {self._exact(entry, one) for one in rule.other_persons}
        names_person = tag == PERSON or held in others
        origin = (name, held) if rule.public else None
        ident = f"c{number + 1}"
        return typed, RelationColumn(held, ident, typed.sort, tag, names_person, origin)

    def _tag(self, entry: TableEntry, name: str, rule: TableRule, held: str) -> Tag | None:
        if rule.person is not None and self._exact(entry, rule.person) == held:
            return PERSON
        if rule.link is not None and self._exact(entry, rule.link.column) == held:
            if self._links_to_person(rule.link):
                return PERSON
            key = self._exact(self._entry(rule.link.parent), rule.link.key)
            return ("key", rule.link.parent, key)
        for other in self._file.tables.values():
            link = other.link
            if link is not None and link.parent == name and self._exact(entry, link.key) == held:
                return ("key", name, held)
        return None

    def _links_to_person(self, link: Link) -> bool:
        parent, entry = self._file.tables[link.parent], self._entry(link.parent)
        return parent.person is not None and (
            self._exact(entry, parent.person) == self._exact(entry, link.key)
        )

    def _owner(self, entry: TableEntry, holder: str) -> exp.Expression:
        held = self._exact(entry, holder)
        if entry.schema[held] in {"float", "decimal"}:
            raise QueryRefused(
                "person-type",
                f"the person column {held!r} of {entry.parts[-1]!r} holds numbers with fractions, "
                "which do not identify people; use text or whole numbers",
            )
        value = person_of(column(held, EVENTS), held, entry.schema, self._dialect)
        return value if self.whole_numbers() else as_text(value, self._dialect)

    def whole_numbers(self) -> bool:
        """Whether every owner of the file is a whole number, which needs no text."""
        if self._native is None:
            kinds = set()
            for name, rule in self._file.tables.items():
                holder = rule.person
                if rule.link is not None and self._links_to_person(rule.link):
                    holder = rule.link.column
                if holder is not None:
                    entry = self._entry(name)
                    kinds.add(entry.schema[self._exact(entry, holder)])
            if len(kinds) > 1:
                raise QueryRefused(
                    "person-type",
                    "the person columns of the privacy file are of several types; people of one "
                    "file need one type",
                )
            self._native = kinds == {"integer"} and self._dialect != "sqlite"
        return self._native

    def _entry(self, name: str) -> TableEntry:
        entry = self._catalogue.table(tuple(name.split(".")))
        if entry is None or entry.definition is not None:
            raise QueryRefused(
                "unknown-table",
                f"the privacy file names {name!r}, which is not a table; correct it",
            )
        return entry

    def _exact(self, entry: TableEntry, name: str) -> str:
        """The column's name as the schema writes it."""
        if name in entry.schema:
            return name
        same = [held for held in entry.schema if folded(held) == folded(name)]
        if len(same) != 1:
            raise QueryRefused(
                "column",
                f"the privacy file names {entry.parts[-1]}.{name}, which does not exist; mend it",
            )
        return same[0]


def owned_keys(parents: Any, key: exp.Expression, own: exp.Expression) -> exp.Select:
    """Every key with every owner that it has, each pair once: a join multiplies nothing.

    No rule may choose one of several owners: whichever it chooses, taking one person away would
    move a row from or to another.
    """
    return projected(parents, [(key, KEY)], own).distinct()
