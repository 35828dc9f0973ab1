"""The SQL is a promise to reviewers: it changes only on purpose.

To accept a change, delete the snapshot and run the tests once with SNAPSHOTS=write.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sqlglot

from topsecret.sources import CountQuery, Expression
from topsecret.sources.domains.weighted_labels import (
    _ANY_SALT,
    _Relation,
    _salted,
    _sums_of_texts,
)
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.source import Schema
from topsecret.sources.sql.dialects import DIALECTS
from topsecret.sources.sql.rendering import rendered
from topsecret.sources.sql.statements import leading_counts, person_items, table
from topsecret.sources.sql.weighted_sums import ONE_STATEMENT, weighted_sums

SNAPSHOTS = Path(__file__).parent / "snapshots"
SALT = bytes(range(16))
SCHEMA: Schema = {
    "place": "text",
    "city": "text",
    "user": "integer",
    "time": "timestamp",
    "age": "integer",
    "open": "boolean",
}


def matches(name: str, shown: str) -> None:
    path = SNAPSHOTS / name
    if os.environ.get("SNAPSHOTS") == "write" and not path.exists():
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "jsonl"])
def test_files(tmp_path: Path, write_events: Callable[..., Path], suffix: str) -> None:
    path = write_events(tmp_path / f"events.{suffix}", [("ann", "park")])
    sql = FileSource(path).sql(CountQuery(item="place", person="user", rows=201))
    matches(f"{suffix}.sql", sql.replace(str(tmp_path), "/data") + "\n")


QUERIES = {
    "plain": CountQuery(item="place", person="user", rows=201),
    "capped": CountQuery(item="place", person="user", rows=201, max_items=3, salt=SALT),
    "several": CountQuery(
        item=("city", "place"),
        person="user",
        rows=201,
        where=[("city", "in", ["Zürich", "O'Hare\\"]), ("age", ">=", 18), ("open", "=", True)],
        max_items=3,
        salt=SALT,
    ),
    "expression": CountQuery(
        item=Expression("EXTRACT(HOUR FROM time)"),
        person="user",
        rows=25,
        where="lower(city) = 'bonn' AND (age BETWEEN 18 AND 65 OR age IS NULL)",
    ),
}


def queries(dialect: str) -> dict[str, CountQuery]:
    """SQLite has no date parts."""
    if dialect != "sqlite":
        return QUERIES
    first = replace(QUERIES["expression"], item=Expression("substr(city, 1, 2)"))
    return {**QUERIES, "expression": first}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects(dialect: str) -> None:
    shown = []
    for name, query in queries(dialect).items():
        select = leading_counts(table("public", "visits"), query, SCHEMA, dialect)
        shown.append(f"-- {name}\n{select.sql(dialect, pretty=True)};\n")
    matches(f"{dialect}.sql", "\n".join(shown))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", QUERIES)
def test_every_dialect_parses_its_own_sql(dialect: str, name: str) -> None:
    query = queries(dialect)[name]
    sql = leading_counts(table("visits"), query, SCHEMA, dialect).sql(dialect)
    assert len(sqlglot.parse(sql, read=dialect)) == 1


NASTY = "x\"; drop table y; --`'\\"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_name_is_a_name_and_a_value_is_a_value(dialect: str) -> None:
    """Parsed again, the statement holds the names and values that went in, and no second one."""
    query = CountQuery(
        item=NASTY, person="p", rows=3, where=[("w", "=", NASTY)], max_items=2, salt=SALT
    )
    schema: Schema = {NASTY: "text", "p": "text", "w": "text"}
    sql = leading_counts(table(NASTY), query, schema, dialect).sql(dialect)
    parsed = sqlglot.parse(sql, read=dialect)
    assert len(parsed) == 1
    assert parsed[0] is not None
    literals = {node.this for node in parsed[0].find_all(sqlglot.exp.Literal) if node.is_string}
    assert NASTY in literals
    assert NASTY in {node.name for node in parsed[0].find_all(sqlglot.exp.Column)}
    assert NASTY in {node.name for node in parsed[0].find_all(sqlglot.exp.Table)}


@pytest.mark.parametrize("inside", [False, True], ids=["unknown", "public domain"])
def test_postgresql_sorts_by_our_own_distinct_alone(inside: bool) -> None:
    """A pasted query's DISTINCT stays as it is, in the events and in a domain made of one."""
    pasted = sqlglot.parse_one('SELECT DISTINCT "user", place FROM visits').subquery()
    query = CountQuery("place", "user", rows=3, salt=bytes(16))
    schema: Schema = {"place": "integer", "user": "integer"}
    members = sqlglot.parse_one("SELECT DISTINCT item FROM venues").subquery() if inside else None
    pairs = person_items(pasted, query, schema, "postgres", members).subquery()
    sql = weighted_sums(pairs, table("weights"), 2, query, schema, "postgres").sql("postgres")
    assert sql.count("DISTINCT ON (2, 1)") == 1
    assert sql.count("SELECT DISTINCT") == 2 + inside


@pytest.mark.parametrize("dialect", sorted(ONE_STATEMENT))
def test_a_statement_that_is_kept_has_each_questions_own_salt(dialect: str) -> None:
    """Written once, and never with the stand-in; another question's is not in it."""
    relations = [_Relation.of(table(name), dialect) for name in ("events", "weights")]
    shown = []
    for salt in (SALT, SALT[::-1]):
        query = CountQuery("place", "user", rows=3, salt=salt)
        kept = _sums_of_texts(*relations, 2, query, dialect)
        shown.append(rendered(_salted(kept, query.salt), dialect))
        assert salt.hex() in shown[-1]
        assert _ANY_SALT.hex() not in shown[-1]
    assert shown[0].replace(SALT.hex(), SALT[::-1].hex()) == shown[1]
