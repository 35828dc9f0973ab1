"""A privacy file proposed from foreign keys, and a privacy file explained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topsecret.errors import InvalidParameter
from topsecret.sources.open_source import SourceLike
from topsecret.sources.relations.open_query import Privacy, catalogue_of, opened_database
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.rebuild import Rebuilder

ForeignKey = tuple[str, str, str, str]
"""(table, column, parent, key)."""


def proposed(source: SourceLike, person: str) -> str:
    """A privacy file in TOML: tables that foreign keys lead to the people's table, as links.

    Tables that lead there in several ways, or not at all, are left to the owner as comments.
    """
    table, _, column = person.rpartition(".")
    if not table:
        raise InvalidParameter(f"person={person!r} must be TABLE.COLUMN, such as customers.id")
    with catalogue_of(opened_database(source)) as catalogue:
        names, keys = catalogue.tables(), catalogue.foreign_keys()
        if catalogue.table(tuple(table.split("."))) is None:
            raise InvalidParameter(f"there is no table {table!r}; choose from: {', '.join(names)}")
    reached = {table}
    links: dict[str, list[ForeignKey]] = {}
    while True:
        more = [key for key in keys if key[2] in reached and key[0] not in reached]
        if not more:
            break
        for key in more:
            links.setdefault(key[0], []).append(key)
        reached |= {key[0] for key in more}
    return "\n".join(_written(names, table, column, links)) + "\n"


def _written(
    names: tuple[str, ...], table: str, column: str, links: dict[str, list[ForeignKey]]
) -> Iterator[str]:
    for name in names:
        if name == table:
            yield f'[tables.{_key(name)}]\nperson = "{column}"'
        elif name in links:
            (_, held, parent, key), *others = links[name]
            yield f'[tables.{_key(name)}]\nlink = "{held} -> {parent}.{key}"'
            for _, other, another, its in others:
                yield f'# or: link = "{other} -> {another}.{its}"'
        else:
            yield (
                f"# [tables.{_key(name)}]\n"
                '# no foreign key leads to a person: public = true, or person = "…"'
            )


def _key(name: str) -> str:
    plain = name.replace("_", "").replace("-", "").isalnum() and name.isascii()
    return name if plain else f'"{name}"'


def checked(source: SourceLike, privacy: Privacy) -> Iterator[str]:
    """For each table of the file whose rows they are, in words; raises what is wrong."""
    file = privacy if isinstance(privacy, PrivacyFile) else PrivacyFile.load(privacy)
    with catalogue_of(opened_database(source)) as catalogue:
        for name, rule in file.tables.items():
            relation: Any = Rebuilder(file, catalogue).table(tuple(name.split(".")))
            if rule.public:
                yield f"{name}: public, nobody's rows"
            elif rule.person is not None:
                yield f"{name}: each row belongs to the person in {rule.person}"
            else:
                assert rule.link is not None
                shared = (
                    "; the key is not unique, so a row may belong to several"
                    if relation.shared_keys
                    else ""
                )
                yield (
                    f"{name}: each row belongs to the owner of the row of {rule.link.parent} whose "
                    f"{rule.link.key} is its {rule.link.column}{shared}"
                )
