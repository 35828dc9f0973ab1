"""Questions in SQL, where the owner allows it: previewed, paid for and answered like any other."""

import gzip
import re

import pytest
from serving import Here, write_events

SQL = "/api/v1/datasets/pasted/sql"
QUERY = (
    "SELECT place, COUNT(DISTINCT user) AS n FROM anything WHERE colour IN ('red', 'green') "
    "GROUP BY place ORDER BY n DESC LIMIT 2"
)
BODY = {"query": QUERY, "epsilon": 0.5}


@pytest.fixture(scope="module")
def pasted(service: Here) -> Here:
    counts = {"Harbour": 900, "Market": 700, "Library": 500}
    write_events(service.parts.settings.files[0] / "pasted.csv", counts)
    common = {"file": "pasted.csv", "person": "user", "columns": ["place"], "epsilon": 8}
    common |= {"filters": {"colour": "text"}, "cap": 2}
    for name, sql in (("pasted", True), ("unpasted", False)):
        body = common | {"name": name, "title": name, "sql": sql}
        assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
        service.parts.datasets.allow(name, "ann", {"epsilon": 8.0})
    return service


def test_a_query_is_previewed_paid_for_and_answered(pasted: Here) -> None:
    shown = {one["name"]: one["sql"] for one in pasted.call("ann", "GET", "/api/datasets").json()}
    assert (shown["pasted"], shown["unpasted"]) == (True, False)
    plan = pasted.call("ann", "POST", SQL + "/plan", BODY).json()
    same = {"column": "place", "k": 2, "epsilon": 0.5, "counts": True}
    assert plan == pasted.call("ann", "POST", "/api/v1/datasets/pasted/plan", same).json()
    before = pasted.call("ann", "GET", "/api/v1/datasets/pasted/budget").json()["spent"]
    job = pasted.answered("ann", SQL, BODY | {"request_id": "sql-1"})
    assert job["query"] == QUERY
    assert job["column"] == "place"
    (listed,) = re.findall(r"<b><bdi>(Top 2 .*?)</bdi>", pasted.call("ann", "GET", "/answers").text)
    assert listed == "Top 2 of place, in SQL"  # its conditions are in the query alone
    assert job["answer"]["items"] == ["Harbour", "Market"]
    assert len(job["answer"]["counts"]) == 2
    assert pasted.call("ann", "GET", "/api/v1/datasets/pasted/budget").json()["spent"] != before
    again = pasted.call("ann", "POST", SQL, BODY | {"request_id": "sql-1"})
    assert (again.status_code, again.json()["id"]) == (200, job["id"])
    assert job["answer"]["max_items"] == 2, "the owner's cap"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (QUERY.replace("anything", "(SELECT * FROM t LIMIT 9) s"), "LIMIT in a sub-query"),
        (QUERY.replace("place", "user"), "user names a person"),
        (QUERY.replace("colour", "secret"), "there is no column secret"),
        (QUERY.replace("COUNT(DISTINCT user)", "COUNT(*)"), "COUNT(*) needs a bound"),
        (QUERY.replace("LIMIT 2", "LIMIT 1000"), "LIMIT must be at most 100"),
        (QUERY.replace("LIMIT 2", "LIMIT " + "9" * 5000), "has more than 18 digits"),
        (QUERY.replace("ORDER", f"HAVING n >= {'9' * 5000} ORDER"), "has more than 18 digits"),
        (QUERY + "; DROP TABLE t", "leave out DROP TABLE t"),
        (QUERY.replace("FROM anything", "FROM read_csv('/etc/passwd')"), "is not a table"),
    ],
)
def test_what_is_refused_is_refused_before_anything_is_asked(
    query: str, says: str, pasted: Here
) -> None:
    for path in (SQL + "/plan", SQL):
        refused = pasted.call("ann", "POST", path, BODY | {"query": query})
        assert refused.status_code == 400, refused.json()
        assert says in refused.json()["message"]


def test_sql_is_asked_where_the_owner_allows_it_alone(pasted: Here) -> None:
    refused = pasted.call("ann", "POST", SQL.replace("pasted", "unpasted"), BODY)
    assert refused.status_code == 400
    assert "does not let this dataset be asked in SQL" in refused.json()["message"]
    assert pasted.call("bob", "POST", SQL, BODY).status_code == 404
    assert pasted.call("ann", "POST", SQL, {"query": QUERY}).status_code == 400, "no epsilon"


def test_the_page_takes_a_query(pasted: Here) -> None:
    assert 'name="query"' in pasted.call("ann", "GET", "/datasets/pasted").text
    assert 'name="query"' not in pasted.call("ann", "GET", "/datasets/unpasted").text
    headers = {"authorization": f"Bearer {pasted.keys['ann']}", "accept": "text/html"}
    # As a browser sends it, whatever the fields beside it say.
    query = QUERY.replace(" WHERE", "\nWHERE")
    form = {"request_id": "page", "step": "8", "query": query.replace("\n", "\r\n"), "k": "7"}
    sent = pasted.client.post("/datasets/pasted", headers=headers, data=form)
    assert sent.status_code == 303
    job = pasted.ended("ann", sent.headers["location"].removeprefix("/answers/"))
    assert (job["query"], job["answer"]["items"]) == (query, ["Harbour", "Market"])
    assert "\nWHERE colour IN" in pasted.call("ann", "GET", sent.headers["location"]).text
    refused = pasted.client.post("/datasets/unpasted", headers=headers, data=form)
    assert refused.status_code == 400
    assert "does not let this dataset be asked in SQL" in refused.text


@pytest.mark.parametrize("name", ["lines.jsonl", "lines.ndjson.gz"])
def test_json_lines_are_not_registered_for_sql(service: Here, name: str) -> None:
    """Each line names its own fields, so that every query would be refused."""
    folder = service.parts.settings.files[0]
    lines = b'{"user": "u1", "place": "Harbour"}\n'
    (folder / name).write_bytes(gzip.compress(lines) if name.endswith("gz") else lines)
    body = {"title": "Lines", "person": "user", "columns": ["place"], "epsilon": 1}
    body |= {"name": name.replace(".", "-"), "file": name}
    refused = service.call("olga", "POST", "/api/v1/datasets", body | {"sql": True})
    assert refused.status_code == 400
    assert "JSON lines name their fields line by line" in refused.json()["message"]
    assert service.call("olga", "POST", "/api/v1/datasets", body).status_code == 201
    # Nor is a dataset that may be asked in SQL pointed to them.
    write_events(folder / "first.csv", {"Harbour": 3})
    body |= {"name": f"moving-{body['name']}", "file": "first.csv", "sql": True}
    assert service.call("olga", "POST", "/api/v1/datasets", body).status_code == 201
    path = f"/api/v1/datasets/{body['name']}"
    assert service.call("olga", "PATCH", path, {"file": name}).status_code == 400
