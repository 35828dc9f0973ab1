"""Data flow one way: sources → mechanisms → release; few places let them meet."""

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
    # A setting of the embedded engine, also for those who start engines and may not know them.
    "memory": {"errors"},
    "noise": {"errors", "rounding"},
    "accounting": {"errors", "rounding"},
    "tabulation": {"errors", "noise", "order"},
    "histogram": {"errors", "noise", "tabulation"},
    # Names of a histogram that an engine keeps are fetched; by whom is not known here.
    "grouped": {"errors", "noise", "histogram"},
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
    "sources": {"errors", "memory", "unit"},
    "release": {"errors", "picture", "rounding", "selection", "unit"},
    "releases": {"release"},
    "picture": {"errors"},
    "record": {"release", "releases", "unit"},
    "ledger": {"errors", "rounding", "accounting", "unit"},
    "demo": {"errors"},
    # What can answer a question and at what price: public numbers only, hence no sources.
    "catalogue": {
        "errors",
        "rounding",
        "noise",
        "accounting",
        "histogram",
        "mechanisms",
        "release",
        "selection",
    },
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
    # Votes and comparisons come as arrays, from whoever has them: no sources.
    "pate": {"errors", "rounding", "noise", "accounting", "mechanisms"},
    "ranking": {
        "errors",
        "rounding",
        "noise",
        "order",
        "accounting",
        "histogram",
        "mechanisms",
    },
    "interop": {"errors", "rounding", "histogram", "mechanisms"},
    # A source and a mechanism for a question; of a ledger it knows the terms alone.
    "asking": {
        "errors",
        "rounding",
        "accounting",
        "grouped",
        "histogram",
        "catalogue",
        "ledger",
        "memory",
        "planning",
        "release",
        "sources",
        "unit",
        "",
    },
    "paying": {"errors", "rounding", "asking", "catalogue", "ledger"},
    "query": {"asking", "paying", "rounding", "ledger", "record", "release", "sources"},
    # Several questions at once.
    "by_group": {
        "errors",
        "asking",
        "paying",
        "ledger",
        "record",
        "releases",
        "rounding",
        "sources",
    },
    # The second meeting place: a file of comparisons and a ranking of it.
    "contest": {"errors", "rounding", "sources", "ranking"},
    "cli": {
        "errors",
        "by_group",
        "noise",
        "ledger",
        "release",
        "query",
        "planning",
        "accounting",
        "demo",
        "service",
        "verify",
        "pate",
        "contest",
        "ranking",  # the type of what it shows
        "",
    },
    # The schema of a file, for whoever may not see its rows.
    "columns": {"sources"},
    # A thin layer: it asks by query, pays by the ledger, and knows no engine and no mechanism.
    "service": {
        "errors",
        "rounding",
        "columns",
        "demo",
        "ledger",
        "memory",
        "planning",
        "query",
        "record",
        "release",
        "",
    },
    "__main__": {"cli"},
    "": {"by_group", "histogram", "planning", "query", "selection"},
}
ONLY_IN = {
    "duckdb": {"sources"},
    "sqlglot": {"sources"},
    "typer": {"cli"},
    "rich": {"cli", "sources", "pate"},
    "scipy": {"ranking"},
    "sklearn": {"pate"},
    "joblib": {"pate"},
    "matplotlib": {"planning", "picture", "release"},
    "fastapi": {"service"},
    "sqlalchemy": {"ledger", "service", "sources"},
    "psycopg": {"ledger"},
    "platformdirs": {"ledger", "service"},
    "opendp": {"interop"},
    "random": {"demo"},
    # To silence PySpark, whose loggers print rows; to make others' lines JSON without data.
    "logging": {"sources", "service"},
    "uvicorn": {"service"},
    "jinja2": {"service"},
    "pyspark": {"sources"},
    "warnings": {"pate"},  # to silence what teachers' rows would raise
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


CHOOSING = {"mechanisms", "catalogue", "planning", "pate", "ranking"}


@pytest.mark.parametrize(
    ("one", "others", "places"),
    [
        ("sources", CHOOSING, {"asking", "contest"}),
        ("sources", {"ledger"}, {"asking", "query", "by_group"}),
        ("ledger", {"mechanisms", "catalogue"}, {"asking", "paying"}),
    ],
)
def test_source_mechanism_and_ledger_meet_in_few_places(
    one: str, others: set[str], places: set[str]
) -> None:
    meeting = {
        part
        for part, uses in MAY_USE.items()
        if part not in ("cli", "") and one in uses and uses & others
    }
    assert meeting == places
