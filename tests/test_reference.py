"""The reference says of everything that a caller gives what it means."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import griffe
import pytest

import topsecret
import topsecret.client
from pages import ROOT, long_paragraphs

FOUND = importlib.util.spec_from_file_location(
    "short_pages", ROOT / "docs" / "site" / "short_pages.py"
)
assert FOUND
assert FOUND.loader
short_pages = importlib.util.module_from_spec(FOUND)
FOUND.loader.exec_module(short_pages)

EXPORTED = {
    f"{found.__module__}.{found.__qualname__}"
    for package in (topsecret, topsecret.client)
    for name in package.__all__
    if hasattr(found := getattr(package, name), "__qualname__")
}
HEADS = ("| parameter |", "| field |")


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    """Every module, class, function and attribute that has a page."""
    rewriting = griffe.load_extensions(str(ROOT / "docs" / "site" / "docstrings.py"))
    package = griffe.load("topsecret", search_paths=[ROOT / "src"], extensions=rewriting)
    pages = {
        module
        for text in short_pages.topics().values()
        for module, _ in short_pages.with_pages(text)
    }
    found = [one for one in _objects(package) if not one.is_module or one.path in pages]
    return [one for one in found if one.module.path in pages]


@pytest.fixture(scope="module")
def tables(shown: list[Any]) -> dict[str, list[str]]:
    """The table of every class and function that has a page, by name: its lines."""
    told = {one.path: one.docstring.value for one in shown if one.docstring and not one.is_module}
    return {name: table for name, text in told.items() if (table := _table(text))}


def test_no_paragraph_of_the_reference_is_long(shown: list[Any]) -> None:
    found = {one.path: long_paragraphs(one.docstring.value) for one in shown if one.docstring}
    assert {name: long for name, long in found.items() if long} == {}


def _objects(parent: Any) -> Iterator[Any]:
    for name, one in parent.members.items():
        if not one.is_alias and not name.startswith("_"):
            yield one
            yield from _objects(one) if one.is_class or one.is_module else ()


def _table(text: str) -> list[str]:
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith(HEADS)), len(lines))
    return [line for line in lines[start:] if line.startswith("|")]


def _empty(table: list[str]) -> list[str]:
    """The rows without a meaning; all of them where the table has no column of it."""
    head, _, *rows = table
    if head.split(" | ")[1] != "meaning":
        return rows
    return [row for row in rows if not row.split(" | ")[1].strip()]


def test_all_that_is_exported_is_explained(tables: dict[str, list[str]]) -> None:
    found = {
        name: empty
        for name, table in tables.items()
        if name in EXPORTED or name.rpartition(".")[0] in EXPORTED
        if (empty := _empty(table))
    }
    assert found == {}


def test_everything_exported_was_looked_at(tables: dict[str, list[str]]) -> None:
    assert {"topsecret.questions.top_k.top_k", "topsecret.client.service.Service.plan"} <= set(
        tables
    )
    assert len([name for name in EXPORTED if name in tables]) > 15


def test_no_column_of_meanings_has_a_gap(tables: dict[str, list[str]]) -> None:
    with_meanings = {name: table for name, table in tables.items() if "| meaning |" in table[0]}
    assert len(with_meanings) > 150
    assert {name: empty for name, table in with_meanings.items() if (empty := _empty(table))} == {}


def test_a_row_without_a_meaning_is_found() -> None:
    head = ["| parameter | meaning | type | default |", "| --- | --- | --- | --- |"]
    assert _empty([*head, "| `k` | How many. | int | 1 |", "| `by` |  | str | required |"]) == [
        "| `by` |  | str | required |"
    ]
    assert _empty(["| field | type | default |", "| --- | --- | --- |", "| `k` | int | 1 |"])
