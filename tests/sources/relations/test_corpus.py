"""Queries that must be accepted, with what they ask, and queries that must be refused, with why."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from topsecret.sources.relations.catalogue import FixedCatalogue, TableEntry
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.ranked_query import RankedQuery, read
from topsecret.sources.relations.refusal import QueryRefused

CORPUS = json.loads((Path(__file__).parent / "queries.json").read_text("utf-8"))
KINDS: dict[str, Any] = {
    "INTEGER": "integer",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DOUBLE": "float",
    "DECIMAL(9,2)": "decimal",
}
FILE = PrivacyFile.parse(CORPUS["privacy_file"])


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(CORPUS["schema"])
    return connection


@pytest.fixture(scope="module")
def catalogue(database: duckdb.DuckDBPyConnection) -> FixedCatalogue:
    entries = {}
    views = dict(
        database.sql("FROM duckdb_views() SELECT view_name, sql WHERE NOT internal").fetchall()
    )
    for (name,) in database.sql("SHOW TABLES").fetchall():
        described = database.sql(f"DESCRIBE {name}").fetchall()
        text = views.get(name)
        entries[name] = TableEntry(
            ("main", name),
            {row[0]: KINDS.get(row[1], "integer") for row in described},
            frozenset({"id"}) if name in {"customers", "orders"} else frozenset(),
            None if text is None else text[text.index(" AS ") + 4 :].rstrip().rstrip(";"),
        )
    return FixedCatalogue("duckdb", entries)


def asked(query: RankedQuery) -> dict[str, Any]:
    return {
        "k": query.k,
        "counts": query.counts,
        "item": list(query.titles),
        "by": None if query.by is None else query.titles[query.by],
        "groups": list(query.groups),
        "domain": query.domain,
        "at_least": query.at_least,
        "smallest": query.smallest,
        "max_items": query.max_items,
        "measure": "persons",
    }


@pytest.mark.parametrize("case", CORPUS["accepted"], ids=lambda case: case["name"])
def test_accepted(
    case: dict[str, Any], database: duckdb.DuckDBPyConnection, catalogue: FixedCatalogue
) -> None:
    query = read(case["query"], FILE, catalogue, case["dialect"])
    got = asked(query)
    for name, wanted in case["question"].items():
        if wanted == "…":
            assert got[name] is not None, name
        else:
            assert (
                got[name] == str(wanted).rstrip("!") if name == "measure" else got[name] == wanted
            )
    database.sql(query.rows.sql("duckdb")).fetchall()
    if query.domain is not None:
        database.sql(query.domain.sql("duckdb")).fetchall()


@pytest.mark.parametrize("case", CORPUS["refused"], ids=lambda case: case["name"])
def test_refused(case: dict[str, Any], catalogue: FixedCatalogue) -> None:
    with pytest.raises(QueryRefused) as refused:
        read(case["query"], FILE, catalogue, case["dialect"])
    assert refused.value.reason in case["reason"].split("|")
    assert len(str(refused.value)) > 20, "a sentence, not a code"
