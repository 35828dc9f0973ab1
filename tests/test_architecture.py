"""Data flow one way: sources → mechanisms → release; only query lets them meet."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "topsecret"

# Each part of the package and the parts that it may use. To turn an arrow round, argue here.
MAY_USE: dict[str, set[str]] = {
    "errors": set(),
    "selection": set(),
    "order": set(),
    "rounding": {"errors"},
    "unit": {"errors"},
    "noise": {"errors", "rounding"},
    "accounting": {"errors", "rounding"},
    "tabulation": {"errors", "noise", "order"},
    "histogram": {"errors", "noise", "tabulation"},
    "mechanisms": {
        "errors",
        "rounding",
        "noise",
        "order",
        "accounting",
        "histogram",
        "selection",
        "unit",
    },
    "sources": {"errors", "unit"},
    "release": {"errors", "rounding", "selection", "unit"},
    "demo": {"errors"},
    # What can answer a question and at what price: public numbers only, hence no sources.
    "catalogue": {"errors", "rounding", "accounting", "mechanisms", "release", "selection"},
    # Plans simulate on made-up counts, hence noise and histograms, and never on a source.
    "planning": {
        "errors",
        "rounding",
        "noise",
        "accounting",
        "histogram",
        "mechanisms",
        "catalogue",
        "release",
    },
    "verify": {
        "errors",
        "rounding",
        "noise",
        "accounting",
        "histogram",
        "selection",
        "mechanisms",
    },
    "record": {"release", "unit"},
    "ledger": {"errors", "rounding", "unit", "accounting"},
    # The schema of a file, for whoever may not see its rows.
    "columns": {"sources"},
    # A thin layer over the rest: it asks by query alone and never reads a source itself.
    "service": {
        "errors",
        "rounding",
        "release",
        "record",
        "catalogue",
        "planning",
        "ledger",
        "query",
        "columns",
        "demo",
        "",
    },
    "query": {
        "errors",
        "rounding",
        "histogram",
        "mechanisms",
        "catalogue",
        "planning",
        "ledger",
        "record",
        "release",
        "sources",
        "unit",
        "",
    },
    "cli": {
        "errors",
        "release",
        "query",
        "planning",
        "accounting",
        "ledger",
        "service",
        "demo",
        "verify",
        "",
    },
    "__main__": {"cli"},
    "": {"histogram", "planning", "query", "selection"},
}
ONLY_IN = {
    "duckdb": {"sources"},
    "sqlglot": {"sources"},
    "typer": {"cli"},
    "rich": {"cli", "sources"},
    "matplotlib": {"planning"},
    "random": {"demo"},
    "logging": {"service"},  # where other packages' lines are made JSON without data
    "fastapi": {"service"},
    "uvicorn": {"service"},
    "jinja2": {"service"},
    "warnings": set(),
}


def parts() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).with_suffix("").parts[0]
        yield ("" if part == "__init__" else part), path


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def target(name: str) -> str:
    """The part of topsecret that an import reaches; a name of the package itself is ``""``."""
    below = name.split(".")[1:]
    exists = below and ((PACKAGE / below[0]).exists() or (PACKAGE / f"{below[0]}.py").exists())
    return below[0] if exists else ""


CASES = [pytest.param(part, path, id=str(path.relative_to(PACKAGE))) for part, path in parts()]


@pytest.mark.parametrize(("part", "path"), CASES)
def test_no_arrow_turns_round(part: str, path: Path) -> None:
    assert part in MAY_USE, f"place {part!r} in the flow: add it to MAY_USE"
    used = {target(name) for name in imports(path) if name.split(".")[0] == "topsecret"}
    assert used - {part} <= MAY_USE[part]


@pytest.mark.parametrize(("part", "path"), CASES)
def test_engines_and_terminals_stay_at_the_edges(part: str, path: Path) -> None:
    for name in imports(path):
        assert part in ONLY_IN.get(name.split(".")[0], {part}), f"{name} does not belong in {part}"


@pytest.mark.parametrize(("part", "path"), CASES)
def test_randomness_is_cryptographic(part: str, path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        insecure = isinstance(node, ast.Attribute) and ast.unparse(node) in {
            "np.random",
            "numpy.random",
        }
        assert not insecure, "numpy.random belongs in tests and benchmarks"


@pytest.mark.parametrize(("part", "path"), CASES)
def test_a_file_holds_one_idea(part: str, path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


ASSETS = [
    path
    for folder in ("static", "templates")
    for path in sorted((PACKAGE / "service" / folder).iterdir())
]


@pytest.mark.parametrize("path", ASSETS, ids=lambda path: path.name)
def test_a_page_holds_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_source_and_mechanism_meet_in_one_place() -> None:
    meeting = {
        part
        for part, uses in MAY_USE.items()
        if "sources" in uses and uses & {"mechanisms", "catalogue", "planning"}
    }
    assert meeting == {"query"}
