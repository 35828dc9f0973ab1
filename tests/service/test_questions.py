"""Questions as the library asks them: filters by kind, counts with intervals, all that is safe."""

import json
import re
from dataclasses import replace

import pytest
from serving import Here, write_events

from topsecret.ledger import Flexible, Price
from topsecret.ledger.amounts import as_text
from topsecret.planning.summary import outlook
from topsecret.questions.top_k import top_k, top_k_by
from topsecret.results.group_releases import Releases
from topsecret.results.receipt import two_people
from topsecret.service.filters import conditions, typed
from topsecret.service.grouped_by import GroupedBy
from topsecret.service.jobs.job import Asked
from topsecret.service.preview import _buys, worst_case
from topsecret.service.problems import Problem
from topsecret.service.question_rules import may_be_asked
from topsecret.service.ranked_by import RankedBy
from topsecret.service.web.analyst_pages import _grouped_by, _ranked_by

ASK, PLAN = "/api/v1/datasets/chosen/ask", "/api/v1/datasets/chosen/plan"
QUESTION = {"column": "place", "k": 2, "epsilon": 0.5}


@pytest.fixture(scope="module")
def chosen(service: Here) -> Here:
    """A dataset whose rows may be chosen by their colour."""
    counts = {"Harbour": 900, "Market": 700, "Library": 500}
    write_events(service.parts.settings.files[0] / "chosen.csv", counts)
    body = {"name": "chosen", "title": "Chosen", "file": "chosen.csv", "person": "user"}
    body |= {"columns": ["place"], "filters": {"colour": "text"}, "epsilon": 8}  # type: ignore[dict-item]
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("chosen", "ann", {"epsilon": 8.0})
    return service


def test_a_filter_counts_some_rows_alone(chosen: Here) -> None:
    asked = QUESTION | {"where": [{"column": "colour", "verb": "one of", "value": "red, green"}]}
    assert chosen.call("ann", "POST", PLAN, asked).json()["fits"]
    job = chosen.answered("ann", ASK, asked)
    assert job["answer"]["items"] == ["Harbour", "Market"]
    assert "red" in job["answer"]["where"]
    assert job["where"] == [{"column": "colour", "verb": "one of", "value": "red, green"}]
    nobody = QUESTION | {"where": [{"column": "colour", "verb": "is", "value": "no such"}]}
    assert chosen.answered("ann", ASK, nobody)["answer"]["items"] == []


def test_rows_are_chosen_by_allowed_columns_alone(chosen: Here) -> None:
    for where in (
        [{"column": "user", "verb": "is", "value": "u1"}],
        [{"column": "place", "verb": "is", "value": "Harbour"}],
        [{"column": "colour", "verb": "at least", "value": "red"}],
        [{"column": "colour; DROP", "verb": "is", "value": "x"}],
    ):
        refused = chosen.call("ann", "POST", ASK, QUESTION | {"where": where})
        assert refused.status_code == 400
        assert refused.json()["error"] == "invalid"
    six = [{"column": "colour", "value": "red"}] * 6
    assert chosen.call("ann", "POST", ASK, QUESTION | {"where": six}).status_code == 422
    body = {"name": "p", "title": "P", "file": "chosen.csv", "person": "user", "epsilon": 1}
    body |= {"columns": ["place"], "filters": {"user": "text"}}
    assert chosen.call("olga", "POST", "/api/datasets", body).status_code == 400


def test_a_condition_that_is_no_longer_allowed_ends_its_question(chosen: Here) -> None:
    """The owner changed what is allowed while the question waited."""
    jobs, asked = chosen.parts.jobs, Asked("place", 1, 0.1, (("size", "is", "9"),))
    job, _ = jobs.ask("ann", "chosen", asked, "late", "nobody")
    assert jobs.run(job.id) == "refused"
    ended = chosen.ended("ann", job.id)
    assert ended["message"] == "This column cannot be filtered by; choose from: colour"


def test_kinds_have_their_verbs_and_values() -> None:
    assert typed("number", "at most", "1.5") == ("<=", 1.5)
    found = conditions([("day", "is", "2026-01-31")], {"day": "date"})
    assert str(found[0][2]) == "2026-01-31"
    for kind, verb, value in (
        ("number", "is", "nan"),
        ("number", "is", "1e999"),
        ("number", "one of", "1"),
        ("date", "at least", "31.1.2026"),
        ("text", "is", ""),
        ("text", "one of", "red,"),
        ("text", "one of", ","),
    ):
        with pytest.raises(Problem):
            typed(kind, verb, value)


def test_counts_come_with_their_intervals_and_the_page_shows_them(chosen: Here) -> None:
    plan = chosen.call("ann", "POST", PLAN, QUESTION | {"counts": True}).json()
    assert plan["fits"]
    assert "noisy count" in plan["answer"]
    job = chosen.answered("ann", ASK, QUESTION | {"counts": True})
    answer = job["answer"]
    assert len(answer["counts"]) == len(answer["items"]) == 2
    page = chosen.call("ann", "GET", f"/answers/{job['id']}").text
    assert f"± {answer['half_width']:,} people" in page
    assert page.count('class="bar"') == page.count('class="error"') == 2
    # Without counts there is nothing to draw: a plain list.
    plain = chosen.answered("ann", ASK, QUESTION)
    page = chosen.call("ann", "GET", f"/answers/{plain['id']}").text
    assert 'class="bar"' not in page
    assert "Harbour" in page
    folded = page.index("<details><summary>Numbers for experts</summary>")
    # The answer's name is random, and may spell anything.
    assert "rho" not in page[:folded].replace(plain["id"], "").lower()
    assert "% of the budget of dataset" in page[folded:]


def test_the_preview_of_counts_costs_what_the_question_costs(chosen: Here) -> None:
    budget = Flexible.of(epsilon=8, delta=1e-6)
    dataset = chosen.parts.datasets.get("chosen")
    job = chosen.answered("ann", ASK, QUESTION | {"counts": True, "epsilon": 0.4})
    seen = outlook(2, 0.4, dataset.delta_of(Asked("place", 2, 0.4, counts=True)), counts=True)
    cost = job["answer"]["charge"]["cost"]
    assert {k: str(v) for k, v in budget.worst(Price(seen.loss)).items() if v} == cost


def test_all_that_is_safe_is_named_with_lower_bounds(chosen: Here) -> None:
    plan = chosen.call("ann", "POST", PLAN, QUESTION | {"k": "all"}).json()
    # Not 'an item that so many people have': of people with many items it needs more.
    assert plan["buys"] == (
        f"An item with {plan['lead']} weighted people is named with 95% probability. People with "
        "many items count less for each."
    )
    assert plan["lead_in"] == "weighted people"
    some = chosen.call("ann", "POST", PLAN, QUESTION | {"k": "all", "at_least": 500}).json()
    assert "of those, the ones shown to have at least 500 people are named" in some["buys"]
    job = chosen.answered("ann", ASK, QUESTION | {"k": "all"})
    assert set(job["answer"]["items"]) == {"Harbour", "Market", "Library"}
    page = chosen.call("ann", "GET", f"/answers/{job['id']}").text
    assert f"at least {job['answer']['at_least'][0]:,} people" in page
    refused = chosen.call("ann", "POST", ASK, QUESTION | {"k": "all", "counts": True})
    assert refused.status_code == 400
    fixed = chosen.call("bob", "POST", "/api/datasets/metered/ask", {"column": "place", "k": "all"})
    assert fixed.status_code == 400


def test_a_preview_says_what_a_cap_keeps_and_that_a_list_has_room_for_k() -> None:
    capped = outlook(10, 1.0, 1e-6, 3)
    assert (capped.name, capped.over_rank, capped.lead_in) == ("weighted", 0, "people")
    assert _buys(capped, 10, 3, None) == (
        f"An item with {capped.lead} people is safe to name with 95% probability; of those, the 10 "
        "largest with noise are named. At most 3 items of each person count."
    )
    assert _buys(outlook(10, 1.0, 1e-6, 10), 10, 10, None).endswith(
        "more people have it than any item below. At most 10 items of each person count."
    )


def test_only_what_surely_has_so_many_persons(chosen: Here) -> None:
    bounds = chosen.answered("ann", ASK, QUESTION | {"k": "all"})["answer"]["at_least"]
    asked = QUESTION | {"k": "all", "at_least": 2}
    assert chosen.call("ann", "POST", PLAN, asked).json()["mechanism"] == "weighted"
    job = chosen.answered("ann", ASK, asked)
    assert job["at_least"] == 2
    assert min(job["answer"]["at_least"]) >= 2
    none = chosen.answered("ann", ASK, asked | {"at_least": 10 * max(bounds)})
    assert none["answer"]["items"] == []
    for wrong in ({"counts": True}, {"k": "auto"}, {"at_least": 0}):
        assert chosen.call("ann", "POST", ASK, asked | wrong).status_code in (400, 422)


def test_what_version_0_1_asked_is_stored_as_it_was() -> None:
    assert json.loads(Asked("place", 3, 1.0).to_text()) == ["place", 3, 1.0]


def test_an_answer_is_that_of_the_library(chosen: Here) -> None:
    """The same question asked by the library finds the service's answer."""
    where = [{"column": "colour", "verb": "is", "value": "red"}]
    asked = QUESTION | {"where": where, "counts": True, "epsilon": 0.45}
    job = chosen.answered("ann", ASK, asked)
    dataset = chosen.parts.datasets.get("chosen")
    again = top_k(
        dataset.source,
        item="place",
        person="user",
        k=2,
        epsilon=0.45,
        delta=dataset.delta_of(Asked("place", 2, 0.45, counts=True)),
        where=[("colour", "=", "red")],
        counts=True,
        ledger=chosen.parts.ledger,
        dataset="chosen",
        analyst="ann",
    )
    assert again.charge is not None
    assert again.charge.stored
    assert list(again.counts or ()) == job["answer"]["counts"]


@pytest.fixture(scope="module")
def bought(service: Here) -> Here:
    """Most persons buy tea, most rows are jam, most money is for rye, which few buy."""
    rows = ["user,item,price"]
    for person in range(2400):
        rows += [f"u{person},tea,1"] + [f"u{person},jam,1"] * (3 * (person % 2))
        rows += [f"u{person},rye,90.5"] * (person % 3 == 0)
    (service.parts.settings.files[0] / "bought.csv").write_text("\n".join(rows) + "\n")
    body = {"name": "bought", "title": "Bought", "file": "bought.csv", "person": "user"}
    body |= {"columns": ["item"], "filters": {"price": "number"}, "epsilon": 20, "sql": True}  # type: ignore[dict-item]
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("bought", "ann", {"epsilon": 20.0})
    return service


BOUGHT = "/api/v1/datasets/bought"
LINES = {"column": "item", "k": 1, "epsilon": 1.0}


@pytest.mark.parametrize(
    ("measure", "first", "lead_in"),
    [
        ({"of": "rows", "max_per_item": ["3"]}, "jam", "rows"),
        ({"of": "rows"}, "jam", "times the bound"),
        ({"of": "rows", "max_per_item": ["3"], "max_total": "4"}, "jam", "rows"),
        (
            {"of": "sum", "column": "price", "unit": "0.1", "max_per_item": ["90.5"]},
            "rye",
            "of price",
        ),
    ],
)
def test_rows_and_sums_are_previewed_paid_for_and_answered(
    bought: Here, measure: dict[str, object], first: str, lead_in: str
) -> None:
    """The preview's cost is the charge, and what one person adds is on the receipt."""
    asked = LINES | {"measure": measure}
    plan = bought.call("ann", "POST", f"{BOUGHT}/plan", asked).json()
    assert (plan["fits"], plan["lead_in"]) == (True, lead_in)
    assert f"{plan['lead']:,} {lead_in}" in plan["buys"]
    job = bought.answered("ann", f"{BOUGHT}/ask", asked)
    assert job["answer"]["items"] == [first]
    assert job["measure"]["of"] == measure["of"]
    assert "Clipped" in dict(job["answer"]["receipt"])
    question = Asked.from_text(Asked("item", 1, 1.0, ranked_by=RankedBy("price")).to_text())
    assert question.ranked_by == RankedBy("price")
    dataset = bought.parts.datasets.get("bought")
    by = RankedBy.from_dict(job["measure"]).measure
    seen = outlook(1, 1.0, dataset.delta_of(question), measure=by)
    worst = Flexible.of(epsilon=20, delta=1e-6).worst(Price(seen.loss))
    cost = {k: v for k, v in job["answer"]["charge"]["cost"].items() if v != "0"}
    assert {k: str(v) for k, v in worst.items() if v} == cost


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"measure": {"of": "sum", "column": "user"}}, "cannot be summed; choose from: price"),
        ({"measure": {"of": "sum"}}, "A sum names its column"),
        ({"measure": {"of": "rows", "unit": "0.1"}}, "Rows have no unit"),
        ({"measure": {"of": "rows", "max_per_item": ["0"]}}, "must be a whole multiple"),
        ({"measure": {"of": "rows"}, "counts": True}, "without counts"),
        ({"measure": {"of": "rows"}, "k": "all"}, "need a number k"),
    ],
)
def test_what_cannot_be_ranked_by_is_refused_for_nothing(
    bought: Here, more: dict[str, object], says: str
) -> None:
    for address in ("plan", "ask"):
        refused = bought.call("ann", "POST", f"{BOUGHT}/{address}", LINES | more)
        assert (refused.status_code, says in refused.json()["message"]) == (400, True)
    private = {"column": "place", "k": 1, "measure": {"of": "rows"}}
    fixed = bought.call("bob", "POST", "/api/datasets/metered/ask", private)
    assert "At a fixed price max_per_item is one number" in fixed.json()["message"]


def test_the_page_and_sql_rank_by_rows_too(bought: Here) -> None:
    wrong = {"of": "rows", "max_per_item": ["lots"]}
    refused = bought.call("ann", "POST", f"{BOUGHT}/plan", LINES | {"measure": wrong})
    words = "A bound on one person is a number like 50 or 7.5, or the word private."
    assert (refused.status_code, refused.json()["message"]) == (422, words)
    page = bought.call("ann", "GET", "/datasets/bought").text
    assert '<option value="sum:price">sum of price</option>' in page
    assert _ranked_by("sum:price", "1, 2", "0.1") == RankedBy("price", "0.1", ("1", "2"))
    assert _ranked_by("rows", " ", "0.1") == RankedBy()
    with pytest.raises(Problem):
        _ranked_by("averages", "3", "1")
    query = "SELECT item, COUNT(*) AS n FROM t GROUP BY item ORDER BY n DESC LIMIT 1"
    query = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_per_item = 3) {query[7:]}"
    job = bought.answered("ann", f"{BOUGHT}/sql", {"query": query, "epsilon": 1.0})
    assert (job["answer"]["items"], job["measure"]["max_per_item"]) == (["jam"], ["3"])


BY_COLOUR = {"by": "colour", "values": ["red", "blue", "green"]}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"groups": BY_COLOUR | {"disjoint": True}},
        {"counts": True, "k": 1},
        {"measure": {"of": "rows", "max_per_item": ["2"]}, "k": 1},
    ],
)
def test_groups_are_previewed_paid_for_and_answered(chosen: Here, more: dict[str, object]) -> None:
    """The preview's worst case is what is reserved, and the library finds the same answer."""
    body = QUESTION | {"groups": BY_COLOUR} | more
    plan = chosen.call("ann", "POST", PLAN, body).json()
    assert (plan["fits"], plan["buys"][:15]) == (True, "In each group: ")
    assert plan["answer"].startswith("You get, for each of 3 groups, ")
    job = chosen.answered("ann", ASK, body)
    assert job["state"] == "answered", job
    dataset, asked = chosen.parts.datasets.get("chosen"), Asked.from_text(_stored(chosen, job))
    assert asked.to_dict()["groups"] == job["groups"]
    ledger = chosen.parts.ledger
    entry = [one for one in ledger.history("chosen") if one.event == "reserved"][-1]
    worst = worst_case(dataset, ledger.account("chosen").budget, asked)
    assert json.loads(entry.body)["cost"] == as_text(worst)
    lists = {one["group"]: one["release"] for one in job["answer"]["groups"]}
    assert list(lists) == ["red", "blue", "green"]
    assert [lists[group]["items"][:1] for group in lists] == [["Harbour"], ["Harbour"], []]
    assert "source" not in lists["red"]
    assert {one["charge"]["groups"] for one in lists.values()} == {3}  # one charge, not three
    disjoint = bool(job["groups"]["disjoint"])
    assert job["answer"]["composition"] == ("parallel" if disjoint else "sequential")
    assert job["answer"]["epsilon"] <= 0.5
    keywords = {} if asked.ranked_by is None else asked.ranked_by.keywords
    again = top_k_by(
        dataset.source,
        by="colour",
        groups=["red", "blue", "green"],
        disjoint=disjoint,
        item="place",
        person="user",
        k=asked.k,
        epsilon=0.5,
        delta=dataset.delta_of(asked),
        counts=asked.counts,
        ledger=ledger,
        dataset="chosen",
        analyst="ann",
        **keywords,
    )
    assert again["red"].charge is not None
    assert again["red"].charge.stored
    assert [list(one.items) for one in again.values()] == [one["items"] for one in lists.values()]


def _stored(chosen: Here, job: dict[str, str]) -> str:
    return chosen.parts.jobs.find(job["id"]).asked.to_text()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"by": "place", "values": ["Harbour"]}, "choose from: colour"),
        ({"by": "user", "values": ["u1"]}, "choose from: colour"),
        ({"by": "colour", "values": ["red", "red"]}, "List each group once"),
        ({"by": "colour", "values": [" "]}, "A group is a text"),
    ],
)
def test_groups_that_are_not_allowed_are_refused_for_nothing(
    chosen: Here, more: dict[str, object], says: str
) -> None:
    for path in (PLAN, ASK):
        refused = chosen.call("ann", "POST", path, QUESTION | {"groups": more})
        assert (refused.status_code, says in refused.json()["message"]) == (400, True)
    for also in ({"k": "auto"}, {"k": "all"}, {"at_least": 2}):
        refused = chosen.call("ann", "POST", PLAN, QUESTION | {"groups": BY_COLOUR} | also)
        assert "Groups need a number k" in refused.json()["message"]
    private = {"groups": BY_COLOUR | {"disjoint": True}, "measure": {"of": "rows"}}
    refused = chosen.call("ann", "POST", PLAN, QUESTION | private)
    assert "Where each person is kept in one group" in refused.json()["message"]
    fixed = Asked("place", 1, None, grouped_by=GroupedBy("place", ("x",)))
    with pytest.raises(Problem) as raised:
        may_be_asked(chosen.parts.datasets, "bob", "metered", fixed)
    assert raised.value.message == "At a fixed price there is one list: leave groups out."


def test_the_page_shows_a_list_for_each_group(chosen: Here) -> None:
    assert _grouped_by("", "red", False) is None
    assert _grouped_by("colour", " red, ,blue ", True) == GroupedBy("colour", ("red", "blue"), True)
    (job, *_) = (
        one for one in chosen.call("ann", "GET", "/api/v1/answers").json() if one.get("groups")
    )
    page = chosen.call("ann", "GET", f"/answers/{job['id']}").text
    assert page.count("<h2><bdi>colour = ") == 3
    assert "All groups" in page
    assert page.count("for all 3 groups together") == 4  # beside each list, and once for all
    answer = chosen.call("ann", "GET", f"/api/v1/answers/{job['id']}").json()["answer"]
    of_all = two_people(answer["epsilon"], answer["delta"])
    assert of_all[1:] in page, "of all groups, not of the first"
    assert GroupedBy("n", ("1", "2")).groups({"n": "number"}).values == (1, 2)
    for value in ("1.5", "x"):
        with pytest.raises(Problem):
            GroupedBy("n", (value,)).groups({"n": "number"})
    csv = chosen.call("ann", "GET", f"/api/v1/answers/{job['id']}/csv").text
    assert csv.splitlines()[0].startswith("colour,")
    release = chosen.parts.jobs.find(job["id"]).release
    assert isinstance(release, Releases)
    assert replace(release, by="=1+1").to_csv().startswith("'=1+1,")  # a column's name


def test_bars_of_all_groups_have_one_scale(chosen: Here) -> None:
    """Twice as many persons have a bar twice as long, in whichever group."""
    body = QUESTION | {"k": 1, "counts": True, "epsilon": 1.0}
    job = chosen.answered("ann", ASK, body | {"groups": BY_COLOUR | {"values": ["red", "blue"]}})
    counts = [one["release"]["counts"][0] for one in job["answer"]["groups"]]
    page = chosen.call("ann", "GET", f"/answers/{job['id']}").text
    widths = [float(one) for one in re.findall('class="bar" width="([^"]+)"', page)]
    assert widths[1] / widths[0] == pytest.approx(counts[1] / counts[0])
