"""Data flow one way: sources → mechanisms → release; few places let them meet."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "topsecret"

# Each part of the package and the parts that it may use. To turn an arrow round, argue here.
MAY_USE: dict[str, set[str]] = {
    "errors": set(),
    "logs": set(),
    "exact": {"errors"},
    "noise": {"errors", "exact"},
    "accounting": {"errors", "exact"},
    # Names of a histogram that an engine keeps are fetched; by whom is not known here.
    "counts": {"errors", "exact", "noise"},
    "mechanisms": {"errors", "exact", "noise", "accounting", "counts"},
    "sources": {"errors", "logs", "exact.equal_values"},  # by which text a person is known
    # Who is protected and what was charged are part of every receipt.
    "results": {
        "errors",
        "exact",
        "accounting.privacy_unit",
        "accounting.charge",
        "accounting.weak_privacy",
    },
    "ledger": {"errors", "exact", "accounting", "logs"},
    # What can answer a question and at what price: public numbers only, hence no sources.
    "calibration": {"errors", "exact", "noise", "accounting", "counts", "mechanisms", "results"},
    # Plans simulate on made-up counts, hence noise and histograms, and never on a source.
    "planning": {
        "errors",
        "exact",
        "noise",
        "accounting",
        "counts",
        "mechanisms",
        "calibration",
        "results",
        "sources.measures",  # what a person adds at most, in public numbers
    },
    "verify": {"errors", "exact", "noise", "accounting", "counts", "mechanisms"},
    # Votes and comparisons come as arrays, from whoever has them: no sources.
    "pate": {"errors", "exact", "noise", "accounting", "mechanisms"},
    "ranking": {
        "errors",
        "exact",
        "noise",
        "accounting",
        "counts",
        "mechanisms",
        "results.export",
        "results.receipt",  # words that all receipts share
    },
    "interop": {"errors", "exact", "counts", "mechanisms"},
    # The one place where source, mechanism and ledger meet.
    "questions": {
        "errors",
        "exact",
        "accounting",
        "calibration",
        "counts",
        "mechanisms.mechanism",  # the type of one that a caller brings
        "ledger",
        "planning",
        "ranking",
        "results",
        "sources",
        "",
    },
    "cli": {
        "errors",
        "exact",
        "noise",
        "ledger",
        "results",
        "questions",
        "planning",
        "accounting",
        "sources.demo_data",
        "sources.file_form",  # how a file is read, in public words
        "sources.examine_file",  # for the owner of the data
        "sources.relations",  # a privacy file is proposed from a schema, which is public
        "service",
        "verify",
        "pate",
        "ranking",  # the type of what it shows
        "",
    },
    # A thin layer: it asks by questions, pays by the ledger, and knows no engine and no mechanism.
    "service": {
        "errors",
        "exact",
        "ledger",
        "planning",
        "questions",
        "results",
        "sources.demo_data",
        "sources.measures",  # what is ranked by, in public words and numbers
        "sources.running_statement",  # a question is ended; how, its engine knows
        "sources.latest_value",  # of a table that the owner declares public
        "sources.memory",
        "sources.relations",  # what a query in SQL asks, by its text and the schema
        "sources.schema",  # for whoever may not see the rows
        "",
    },
    # Python's database interface over pasted SQL.
    "dbapi": {"errors", "questions", "results", ""},
    "__main__": {"cli"},
    # It asks a service over HTTP, and nothing here but what a weak budget is.
    "client": {"errors", "accounting.weak_privacy"},
    "": {"client", "counts", "mechanisms.selection", "planning", "questions", "sources.file_form"},
}
ONLY_IN = {
    "duckdb": {"sources"},
    "sqlglot": {"sources"},
    "typer": {"cli"},
    "rich": {"cli", "sources", "pate"},
    "scipy": {"ranking"},
    "sklearn": {"pate"},
    "joblib": {"pate"},
    "matplotlib": {"planning", "ranking", "results"},
    "fastapi": {"service"},
    "joserfc": {"service"},
    "sqlalchemy": {"ledger", "logs", "service", "sources"},
    "psycopg": {"ledger"},
    "platformdirs": {"ledger", "service"},
    "opendp": {"interop"},
    "random": {"sources", "pate"},
    # To silence PySpark and SQLAlchemy, which log rows; to make others' lines JSON without data.
    "logging": {"sources", "service", "logs"},
    "uvicorn": {"service"},
    "jinja2": {"service"},
    "pyspark": {"sources"},
    # What teachers' rows raise is silenced; older keywords. WeakPrivacy: raised, printed, accepted.
    "warnings": {"pate", "questions", "accounting", "cli", "service"},
}


def parts() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).with_suffix("").parts[0]
        yield ("" if part == "__init__" else part), path


@cache
def tree(path: Path) -> tuple[ast.AST, ...]:
    """All that a file says, read once for all tests."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[str]:
    for node in tree(path):
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


# One test for all files, which names every offender: a test for each file costs more than it does.
FILES = list(parts())
ASSETS = [
    path
    for folder in ("static", "templates")
    for path in sorted((PACKAGE / "service" / "web" / folder).iterdir())
]


def test_no_arrow_turns_round() -> None:
    assert {part for part, _ in FILES} <= set(MAY_USE), "place the part in the flow: MAY_USE"
    turned = [
        f"{path.relative_to(PACKAGE)} may not use {name}"
        for part, path in FILES
        for name in imports(path)
        if name.split(".")[0] == "topsecret"
        and not {target(name), ".".join(name.split(".")[1:3])} & {part, *MAY_USE[part]}
    ]
    assert turned == []


def test_nothing_stands_loose_beside_the_public_front() -> None:
    loose = {path.name for path in PACKAGE.glob("*.py")}
    assert loose == {"__init__.py", "__main__.py", "errors.py"}


def test_engines_and_terminals_stay_at_the_edges() -> None:
    misplaced = [
        f"{name} does not belong in {path.relative_to(PACKAGE)}"
        for part, path in FILES
        for name in imports(path)
        if part not in ONLY_IN.get(name.split(".")[0], {part})
    ]
    assert misplaced == []


def test_randomness_is_cryptographic() -> None:
    """numpy.random belongs in tests and benchmarks, and to the models that teachers are."""
    insecure = {
        str(path.relative_to(PACKAGE))
        for _, path in FILES
        for node in tree(path)
        if isinstance(node, ast.Attribute) and node.attr == "random"
        if ast.unparse(node) in {"np.random", "numpy.random"}
    }
    assert insecure == {"pate/model_seeds.py"}


def test_a_file_holds_one_idea() -> None:
    long = [
        str(path.relative_to(PACKAGE))
        for path in [*(path for _, path in FILES), *ASSETS]
        if len(path.read_text(encoding="utf-8").splitlines()) > 400
    ]
    assert long == []


CHOOSING = {"mechanisms", "calibration", "planning", "pate", "ranking"}


@pytest.mark.parametrize(
    ("one", "others"),
    [("sources", CHOOSING), ("sources", {"ledger"}), ("ledger", {"mechanisms", "calibration"})],
)
def test_source_mechanism_and_ledger_meet_in_one_place(one: str, others: set[str]) -> None:
    meeting = {
        part
        for part, uses in MAY_USE.items()
        if part not in ("cli", "") and one in uses and uses & others
    }
    assert meeting == {"questions"}
