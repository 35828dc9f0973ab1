"""What a preview foresees, and a schedule pays in advance, is what the ledger reserves."""

import json
from fractions import Fraction
from typing import Any

import pytest
from serving import Here, write_events

from topsecret.ledger.amounts import as_text
from topsecret.service.jobs.job import Asked
from topsecret.service.preview import worst_case

RED_AND_BLUE = {"by": "colour", "values": ["red", "blue"]}
ROWS, PRIVATE_ROWS = {"of": "rows", "max_per_item": ["3"]}, {"of": "rows"}
SUM = {"of": "sum", "column": "amount", "unit": "0.1", "max_per_item": ["2.5"]}
KINDS: dict[str, dict[str, Any]] = {
    "one item": {"k": 1},
    "four items": {"k": 4},
    "a hundred items": {"k": 100},
    "auto": {"k": "auto"},
    "all": {"k": "all"},
    "all of at least 40": {"k": "all", "at_least": 40},
    "at least 40": {"k": 4, "at_least": 40},
    "counts": {"k": 4, "counts": True},
    "counts, auto": {"k": "auto", "counts": True},
    "chosen rows": {"k": 4, "where": [{"column": "colour", "verb": "is", "value": "red"}]},
    "rows": {"k": 4, "measure": ROWS},
    "rows, private bound": {"k": 4, "measure": PRIVATE_ROWS},
    "rows, several bounds": {"k": 4, "measure": ROWS | {"max_per_item": ["1", "3"]}},
    "rows, in total": {"k": 4, "measure": ROWS | {"max_total": "9"}},
    "sum": {"k": 4, "measure": SUM},
    "sum, private bound": {"k": 4, "measure": SUM | {"max_per_item": ["private"]}},
    "sum, several bounds": {"k": 4, "measure": SUM | {"max_per_item": ["1", "2.5"]}},
    "groups": {"k": 4, "groups": RED_AND_BLUE},
    "groups, disjoint": {"k": 4, "groups": RED_AND_BLUE | {"disjoint": True}},
    "groups, counts": {"k": 2, "groups": RED_AND_BLUE, "counts": True},
    "groups, rows": {"k": 2, "groups": RED_AND_BLUE, "measure": ROWS},
    "groups, private bound": {"k": 2, "groups": RED_AND_BLUE, "measure": PRIVATE_ROWS},
    "groups, sum": {"k": 2, "groups": RED_AND_BLUE | {"disjoint": True}, "measure": SUM},
}
FOUR, FIVE = "ORDER BY n DESC LIMIT 4", "ORDER BY n DESC LIMIT 5"
HAVING = "HAVING COUNT(DISTINCT user) >= 40"


def _sql(options: str = "", measure: str = "COUNT(DISTINCT user)", end: str = FOUR) -> str:
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) " if options else ""
    return f"SELECT {clause}place, {measure} AS n FROM t GROUP BY place {end}"


CAP = "max_groups_contributed = "
QUERIES = {
    "SQL": _sql(),
    "SQL, cap 1": _sql(CAP + "1"),
    "SQL, cap 2": _sql(CAP + "2"),
    "SQL, cap 50": _sql(CAP + "50", end=FIVE),
    "SQL, cap, no counts": _sql(CAP + "1")
    .replace(", COUNT(DISTINCT user) AS n", "")
    .replace("ORDER BY n", "ORDER BY COUNT(DISTINCT user)"),
    "SQL, auto": _sql(end="ORDER BY n DESC"),
    "SQL, cap, auto": _sql(CAP + "1", end="ORDER BY n DESC"),
    "SQL, all": _sql(end=f"{HAVING} ORDER BY n DESC"),
    "SQL, cap, all": _sql(CAP + "1", end=f"{HAVING} ORDER BY n DESC"),
    "SQL, cap, cut": _sql(CAP + "1", end=f"{HAVING} {FIVE}"),
    "SQL, rows": _sql("max_rows_per_item = 3", "COUNT(*)"),
    "SQL, rows, private bound": _sql("max_rows_per_item = private", "COUNT(*)"),
    "SQL, rows, cap": _sql(f"max_rows_per_item = 3, {CAP}1", "COUNT(*)"),
    "SQL, sum": _sql("max_sum_per_item = 2.5, unit = 0.1", "SUM(CAST(amount AS DOUBLE))"),
    "SQL, sum, cap": _sql(f"max_sum_per_item = 2, {CAP}1", "SUM(CAST(amount AS DOUBLE))"),
}
FIXED = {"one item": {"k": 1}, "rows": {"k": 2, "measure": ROWS}}
FIXED_QUERIES = {
    "SQL": _sql(measure="COUNT(DISTINCT user)")
    .replace(", COUNT(DISTINCT user) AS n", "")
    .replace("ORDER BY n", "ORDER BY COUNT(DISTINCT user)"),
}
FIXED_QUERIES["SQL, cap"] = FIXED_QUERIES["SQL"].replace(
    "SELECT ", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({CAP}1) "
)


@pytest.fixture(scope="module")
def priced(service: Here) -> Here:
    """One small file as three datasets: without the owner's cap, with it, at a fixed price."""
    path = service.parts.settings.files[0] / "priced.csv"
    write_events(path, {"Harbour": 90, "Market": 70, "Library": 50})
    first, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{first},amount", *(f"{row},1.5" for row in rows)]) + "\n")
    body: dict[str, Any] = {"title": "Priced", "file": "priced.csv", "person": "user"}
    body |= {"columns": ["place"], "filters": {"colour": "text", "amount": "number"}, "sql": True}
    budgets: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "open": ({"epsilon": 20}, {"epsilon": 20.0}),
        "capped": ({"epsilon": 20, "cap": 3}, {"epsilon": 20.0}),
        "fixed": (
            {"epsilon": 20, "queries": 99, "picks": 500},
            {"queries": 99, "picks": 500},
        ),
    }
    for name, (more, share) in budgets.items():
        made = service.call("olga", "POST", "/api/v1/datasets", body | {"name": name} | more)
        assert made.status_code == 201, made.text
        service.parts.datasets.allow(name, "ann", share)
    return service


CASES = [
    *((name, kind) for name in ("open", "capped") for kind in (*KINDS, *QUERIES)),
    *(("fixed", kind) for kind in (*FIXED, *FIXED_QUERIES)),
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_worst_case_of_the_plan_is_what_is_reserved(priced: Here, name: str, kind: str) -> None:
    queries, kinds = (FIXED_QUERIES, FIXED) if name == "fixed" else (QUERIES, KINDS)
    path = f"/api/v1/datasets/{name}"
    body: dict[str, Any] = {} if name == "fixed" else {"epsilon": 0.3}
    body |= {"query": queries[kind]} if kind in queries else {"column": "place"} | kinds[kind]
    plan, ask = ("/sql/plan", "/sql") if kind in queries else ("/plan", "/ask")
    foreseen = priced.call("ann", "POST", path + plan, body)
    assert foreseen.status_code == 200, foreseen.text
    ledger, dataset = priced.parts.ledger, priced.parts.datasets.get(name)
    before = _reservations(priced, name)
    job = priced.answered("ann", path + ask, body)
    assert job["state"] == "answered", job
    (reserved,) = _reservations(priced, name)[len(before) :]
    asked = Asked.from_text(priced.parts.jobs.find(job["id"]).asked.to_text())
    assert as_text(worst_case(dataset, ledger.account(name).budget, asked)) == reserved
    share = priced.parts.datasets.allowance(name, "ann")
    assert share is not None
    parts = [Fraction(cost) / share.limits[unit] for unit, cost in reserved.items()]
    assert foreseen.json()["cost"] == float(max(parts))


def _reservations(priced: Here, name: str) -> list[dict[str, str]]:
    held = [one for one in priced.parts.ledger.history(name) if one.event == "reserved"]
    return [json.loads(one.body)["cost"] for one in held]
