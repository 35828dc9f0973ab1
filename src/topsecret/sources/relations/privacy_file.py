"""The privacy file: whose rows each table holds, written by the owner of the data.

>>> file = PrivacyFile.parse('''
... [tables.customers]
... person = "id"
... [tables.orders]
... link = "customer_id -> customers.id"
... [tables.products]
... public = true
... ''')
>>> file.tables["orders"].link
Link(column='customer_id', parent='customers', key='id')

Tables that it does not name cannot be read. The owner affirms that each private row depends on its
owner alone, and that public tables depend on nobody.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from topsecret.errors import InvalidParameter
from topsecret.sources.measures import Bound, Sum, measure_of
from topsecret.sources.sql.identifier_case import folded

_LINK = re.compile(r"\s*([^\s>-][^>]*?)\s*->\s*(.+)\.([^.]+?)\s*")
_ROWS = ""
"""The name under which the bound of rows is kept; sums are kept under their column's."""
_ENTRIES = {"person", "link", "public", "values", "other_persons"}


@dataclass(frozen=True, slots=True)
class Link:
    """Rows belong to the owner of the parent's row whose ``key`` equals ``column``."""

    column: str
    """The column that names the parent's row."""
    parent: str
    """The parent's table."""
    key: str
    """The parent's column that it names."""


@dataclass(frozen=True, slots=True)
class TableRule:
    """Whose rows a table holds: a person column, a link to a parent, or nobody's."""

    person: str | None = None
    """The column that identifies each person; None where there is none."""
    link: Link | None = None
    """Whose rows they are by a parent's; None where there is no parent."""
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Columns whose values are public, with all of them."""
    other_persons: frozenset[str] = frozenset()
    """Columns that name people other than the row's owner."""

    @property
    def public(self) -> bool:
        """Whether the rows are nobody's."""
        return self.person is None and self.link is None


@dataclass(frozen=True, slots=True)
class PrivacyFile:
    """All tables that may be read, by name: ``orders``, or ``shop.orders`` with its schema."""

    tables: Mapping[str, TableRule]
    """The rule of each table."""
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    """Of sums by the column that is summed, in small letters; of rows under the empty name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))
        object.__setattr__(self, "bounds", MappingProxyType(dict(self.bounds)))
        if not self.tables:
            raise InvalidParameter("a privacy file must name a table; write [tables.NAME]")
        for name, rule in self.tables.items():
            self._follow(name, rule)

    @classmethod
    def parse(cls, text: str) -> PrivacyFile:
        """The file from its TOML text."""
        try:
            parsed = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidParameter(f"the privacy file is not TOML: {error}") from None
        unknown = set(parsed) - {"tables", "bounds"}
        if unknown or not isinstance(parsed.get("tables"), dict):
            raise InvalidParameter(
                "a privacy file holds [tables.NAME] sections, and [bounds], only"
                + (f"; found {', '.join(sorted(unknown))}" if unknown else "")
            )
        rules = {name: _rule(name, entry) for name, entry in parsed["tables"].items()}
        return cls(rules, _bounds(parsed.get("bounds", {})))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivacyFile:
        """The file at this path."""
        try:
            text = Path(path).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise InvalidParameter(
                f"the privacy file {path} cannot be read; check the path"
            ) from None
        return cls.parse(text)

    @classmethod
    def of_one_table(cls, table: str, person: str) -> PrivacyFile:
        """The file that ``person=`` alone stands for."""
        return cls({table: TableRule(person=person)})

    @property
    def person(self) -> str:
        """What identifies a person, for receipts and budgets: ``user``, or ``customers.id``."""
        holders = {name: rule.person for name, rule in self.tables.items() if rule.person}
        if len(self.tables) == 1:
            return next(iter(holders.values()), "")
        return " = ".join(f"{name}.{column}" for name, column in sorted(holders.items()))

    def _follow(self, name: str, rule: TableRule) -> None:
        """Links end at a person column and go round in no circle."""
        seen = {name}
        while rule.link is not None:
            parent = rule.link.parent
            if parent not in self.tables:
                raise InvalidParameter(
                    f"the link of {name!r} leads to {parent!r}, which the file does not name; "
                    "add it, or correct the link"
                )
            if parent in seen:
                raise InvalidParameter(f"the links of {name!r} go round in a circle; cut one")
            seen.add(parent)
            rule = self.tables[parent]
        if len(seen) > 1 and rule.person is None:
            raise InvalidParameter(
                f"the links of {name!r} end at a public table; they must end at a person column"
            )


def _bounds(given: Any) -> dict[str, Bound]:
    """What ``[bounds]`` says: ``rows = 5`` and, by column, ``sums.price = 50``."""
    sums = given.get("sums", {}) if isinstance(given, dict) else None
    if not isinstance(sums, dict) or set(given) - {"rows", "sums"}:
        raise InvalidParameter(
            "[bounds] may have rows = NUMBER and sums.COLUMN = NUMBER; nothing else"
        )
    held = {}
    for column, entry in [*([(_ROWS, given["rows"])] if "rows" in given else []), *sums.items()]:
        parts = entry if isinstance(entry, dict) else {"most": entry}
        if "most" not in parts or set(parts) - {"most", "unit"}:
            raise InvalidParameter(
                f"bounds.sums.{column} must be a number, or {{ most = 50, unit = '0.01' }}"
            )
        bound = Bound(str(parts["most"]), str(parts.get("unit", "1")))
        measure_of("rows" if column == _ROWS else Sum(column, bound.unit), bound.most)
        held[folded(column)] = bound
    return held


def _rule(name: str, entry: Any) -> TableRule:
    if not isinstance(entry, dict) or set(entry) - _ENTRIES:
        raise InvalidParameter(
            f"the table {name!r} must have person, link or public, and may have values and "
            "other_persons; nothing else"
        )
    given = [key for key in ("person", "link", "public") if key in entry]
    if len(given) != 1:
        raise InvalidParameter(
            f"the table {name!r} must have exactly one of person, link and public; "
            f"found {', '.join(given) or 'none'}"
        )
    others = _names(name, "other_persons", entry.get("other_persons", []))
    values = {}
    for column, listed in _checked_dict(name, entry.get("values", {})).items():
        if not isinstance(listed, list) or not listed:
            raise InvalidParameter(f"values.{column} of {name!r} must list at least one value")
        values[column] = tuple(listed)
    if entry.get("public") not in (None, True):
        raise InvalidParameter(f"public of {name!r} must be true, or be left out")
    if "public" in entry:
        return TableRule(values=values, other_persons=others)
    if "person" in entry:
        (person,) = _names(name, "person", [entry["person"]])
        return TableRule(person=person, values=values, other_persons=others)
    match = _LINK.fullmatch(entry["link"]) if isinstance(entry["link"], str) else None
    if match is None:
        raise InvalidParameter(
            f"link of {name!r} must read 'column -> parent.key'; found {entry['link']!r}"
        )
    return TableRule(link=Link(*match.groups()), values=values, other_persons=others)


def _names(table: str, entry: str, given: Any) -> frozenset[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) and name for name in given):
        raise InvalidParameter(
            f"{entry} of {table!r} must name columns; write a name, or a list of names"
        )
    return frozenset(given)


def _checked_dict(table: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidParameter(
            f'values of {table!r} must be a section of columns; write column = ["a"]'
        )
    return given
