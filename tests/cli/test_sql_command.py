"""``topsecret sql`` and ``topsecret privacy``: a pasted query on the command line."""

import io
import json
import subprocess
from pathlib import Path

import duckdb
import pytest

import command

PRIVACY = """
[tables.customers]
person = "id"
[tables.orders]
link = "customer_id -> customers.id"
"""
QUERY = (
    "SELECT day, COUNT(DISTINCT person) AS n FROM orders GROUP BY day HAVING n >= 100 ORDER BY n "
    "DESC LIMIT 2"
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    with duckdb.connect(str(folder / "shop.duckdb")) as engine:
        engine.execute(
            "CREATE TABLE customers(id INTEGER PRIMARY KEY); "
            "INSERT INTO customers SELECT range FROM range(900); "
            "CREATE TABLE orders(customer_id INTEGER REFERENCES customers(id), day TEXT); "
            "INSERT INTO orders SELECT range, 'mon' FROM range(900); "
            "INSERT INTO orders SELECT range, 'tue' FROM range(600); "
            "CREATE TABLE notes(text TEXT)"
        )
    (folder / "privacy.toml").write_text(PRIVACY)
    (folder / "top.sql").write_text(QUERY)
    return folder


def asked(shop: Path, query: str, *words: str) -> subprocess.CompletedProcess[str]:
    source = ["--source", "shop.duckdb", "--privacy", "privacy.toml", "--epsilon", "8"]
    return command.run("sql", query, *source, *words, cwd=shop, COLUMNS="100")


def test_a_query_from_a_file_from_the_line_and_from_standard_input(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(QUERY))
    for query in (QUERY, "top.sql", "-"):
        done = asked(shop, query, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["items"] == ["mon", "tue"]
        assert answer["item"] == "day"
        assert abs(answer["counts"][0] - 900) < 60


def test_tables_for_people_and_spreadsheets(shop: Path) -> None:
    done = asked(shop, QUERY, "--csv")
    assert done.stdout.splitlines()[0].startswith("rank,day,persons,within")
    assert [line.split(",")[1] for line in done.stdout.splitlines()[1:]] == ["mon", "tue"]
    done = asked(shop, QUERY)
    assert " ± " in done.stdout
    assert "noisy count is at least 100" in " ".join(done.stdout.split())


def test_explain_is_free(shop: Path) -> None:
    for done in (asked(shop, QUERY, "--explain"), asked(shop, f"EXPLAIN {QUERY}")):
        assert done.returncode == 0, done.stderr
        assert "k: 2" in done.stdout
        assert "at_least: 100" in done.stdout
        assert '"own"' in done.stdout
    told = json.loads(asked(shop, QUERY, "--explain", "--json").stdout)
    assert told["items"] == ["day"]
    assert told["measure"] == "persons"
    rows = "SELECT day, COUNT(*) AS n FROM orders GROUP BY day ORDER BY n DESC LIMIT 2"
    told = json.loads(asked(shop, rows, "--max-per-item", "3", "--explain", "--json").stdout)
    assert told["measure"] == "rows"


def test_a_refusal_is_one_line(shop: Path) -> None:
    done = asked(shop, "SELECT day FROM orders")
    assert done.returncode == 2
    assert "it needs GROUP BY and COUNT(DISTINCT …)" in " ".join(done.stderr.split())
    done = asked(shop, "missing.sql")
    assert done.returncode == 2
    assert "missing.sql cannot be read" in done.stderr


def test_a_privacy_file_is_proposed_and_checked(shop: Path) -> None:
    done = command.run("privacy", "init", "shop.duckdb", "--person", "customers.id", cwd=shop)
    assert done.returncode == 0, done.stderr
    assert 'link = "customer_id -> customers.id"' in done.stdout
    assert "# [tables.notes]" in done.stdout
    done = command.run("privacy", "check", "shop.duckdb", "privacy.toml", cwd=shop)
    assert done.stdout.splitlines()[0] == "customers: each row belongs to the person in id"
    (shop / "wrong.toml").write_text('[tables.customers]\nperson = "name"\n')
    done = command.run("privacy", "check", "shop.duckdb", "wrong.toml", cwd=shop)
    assert done.returncode == 2
    assert "customers.name, which does not exist" in " ".join(done.stderr.split())
