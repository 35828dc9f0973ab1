"""ibis: whatever expression a table became, and with a public domain."""

from typing import Any

import ibis
import pytest

from topsecret import top_k
from topsecret.errors import DataIndependentFailure

# ibis 12 calls what DuckDB 2 has given another name.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

ASKED: dict[str, Any] = {"item": "place", "person": "user", "k": 1, "epsilon": 1}


@pytest.fixture
def visits() -> Any:
    connection = ibis.duckdb.connect()
    connection.con.execute(  # by hand: ibis 12 cannot make one with the newest sqlglot
        """CREATE TABLE visits AS SELECT 'u' || range AS "user", range % 90 AS age,
        CASE WHEN range % 3 > 0 THEN 'park' ELSE 'pier' END AS place FROM range(3000)"""
    )
    yield connection.table("visits")
    connection.disconnect()


EXPRESSIONS: dict[str, Any] = {
    "table": lambda t: t,
    "filter": lambda t: t.filter(t.age > 10),
    "select": lambda t: t.select("user", "place"),
    "mutate": lambda t: t.mutate(other=t.age + 1),
    "rename": lambda t: t.select(user="user", place="place"),
    "union": lambda t: t.union(t),
    "join": lambda t: t.join(t.select("user", again="age"), "user"),
    "limit": lambda t: t.limit(2500),
}


MIXING = {"mutate", "join", "limit"}
"""What may make one row depend on others, or fail: counted where the owner vouches for it."""


@pytest.mark.parametrize("name", list(EXPRESSIONS))
@pytest.mark.parametrize("domain", [None, ["park", "pier", "zoo"]], ids=["unknown", "public"])
def test_an_expression_is_counted(visits: Any, name: str, domain: list[str] | None) -> None:
    make = EXPRESSIONS[name]
    if name in MIXING:
        with pytest.raises(DataIndependentFailure, match="may mix people"):
            top_k(make(visits), **ASKED, domain=domain)
    for _ in range(2):  # what a first question keeps for itself is gone before the second
        release = top_k(make(visits), **ASKED, domain=domain, trust_view=name in MIXING)
        assert release.items == ("park",)
    kept = "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'topsecret%'"
    assert visits.get_backend().con.sql(kept).fetchall() == [(0,)]


def test_the_receipt_names_it(visits: Any) -> None:
    assert "visits" in str(top_k(visits, **ASKED))
    assert "ibis table" in str(top_k(visits.filter(visits.age > 3), **ASKED))
