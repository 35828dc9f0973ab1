"""``topsecret top`` on databases, with domains, counts and groups; ``topsecret doctor``."""

import json
import subprocess
from pathlib import Path

import duckdb
import pytest

import command

QUESTION = ["--item", "place", "--person", "user", "--epsilon", "1", "-k", "1"]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return command.run(*words, COLUMNS="100")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("top") / "shop.duckdb"
    with duckdb.connect(str(path)) as engine:
        engine.execute(
            "CREATE TABLE visits AS SELECT range AS \"user\", CASE WHEN range < 2000 THEN 'park' "
            "ELSE 'pier' END AS place, CASE WHEN range % 2 = 0 THEN 'DE' ELSE 'FR' END AS country, "
            "range % 40 AS number FROM range(3000)"
        )
        engine.execute("CREATE TABLE venues AS SELECT unnest(['park', 'pier', 'zoo']) AS id")
    return str(path)


def test_counts_of_a_public_domain(database: str) -> None:
    done = run("top", database, "--table", "visits", *QUESTION, "--domain", "venues.id", "--counts")
    assert done.returncode == 0, done.stderr
    assert "Public domain   column id of the table venues; no other item" in done.stdout
    assert ["rank", "place", "people"] in [line.split() for line in done.stdout.splitlines()]
    assert " ± " in done.stdout


def test_csv_and_a_picture(database: str, tmp_path: Path) -> None:
    picture = tmp_path / "bars.svg"
    words = ["--where", "country = 'DE'", "--max-items", "2", "--counts", "--csv"]
    done = run("top", database, "--table", "visits", *QUESTION, *words, "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    header, line = done.stdout.splitlines()
    assert header == "rank,place,persons,within,smoothed,before next"
    assert line.startswith("1,park,")
    assert picture.read_text(encoding="utf-8").count("<svg") == 1


def test_a_range_and_several_columns(database: str) -> None:
    done = run(
        *("top", database, "--table", "visits", "--item", "number", "--person", "user"),
        *("--epsilon", "1", "-k", "3", "--domain", "0..99", "--json"),
    )
    record = json.loads(done.stdout)
    assert len(record["items"]) == 3
    assert record["domain"] == "the whole numbers from 0 to 99"
    done = run("top", database, "--table", "visits", *QUESTION, "--item", "country", "--json")
    assert json.loads(done.stdout)["items"][0][0] == "park"


@pytest.mark.parametrize(("more", "how"), [([], "add up"), (["--disjoint"], "one group alone")])
def test_groups(database: str, more: list[str], how: str) -> None:
    groups = ["--by", "country", "--group", "DE", "--group", "FR", *more]
    done = run("top", database, "--table", "visits", *QUESTION, *groups)
    assert done.returncode == 0, done.stderr
    assert "where country = DE" in done.stdout
    assert how in " ".join(done.stdout.split("Together")[1].split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a database needs the name of a table; pass table='visits'"),
        (["--table", "none"], "none of shop.duckdb does not exist or cannot be opened"),
        (["--table", "visits", "--where", "1 = (SELECT 1)"], "may not hold a subquery"),
        (["--table", "visits", "--where", "land = 'DE'"], "has no column 'land'; choose from:"),
        (
            ["--table", "visits", "--max-items", "0"],
            "max_items=0 must be a whole number of at least 1",
        ),
        (["--table", "visits", "--domain", "9..1"], "must not be empty"),
        (["--table", "visits", "--by", "country"], "needs groups=[…], the public values"),
        (["--table", "visits", "--counts", "--counts-share", "2"], "counts_share=2.0 must be"),
    ],
)
def test_a_mistake_is_one_line(database: str, words: list[str], message: str) -> None:
    done = run("top", database, *QUESTION, *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("topsecret: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_the_doctor() -> None:
    done = run("doctor")
    assert done.returncode == 0, done.stderr
    assert "ok  randomness of the operating system" in done.stdout
    assert "ok  counting a file with DuckDB" in done.stdout
    assert "NO  " not in done.stdout
