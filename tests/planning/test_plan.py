"""Plans: statements that are true, public numbers only, readable everywhere."""

import inspect
import json
import math
import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

from topsecret import Zipf, plan
from topsecret.calibration import Question, applicable, prepare
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter, MissingExtra
from topsecret.noise.bits import ReplayableBits
from topsecret.planning.leads import LIKELY, chance, needed
from topsecret.planning.rule import competing, recommend, smallest_epsilon
from topsecret.planning.simulation import simulate
from topsecret.planning.tested import rough_schedule

UNKNOWN = Question.of(k=3, epsilon=1.0, max_items=2)
PUBLIC = Question.of(k=3, epsilon=1.0, domain_size=500)
AUTO = Question.of(k="auto", epsilon=1.0)


@pytest.mark.parametrize(
    ("name", "question"),
    [(name, question) for question in (UNKNOWN, PUBLIC, AUTO) for name in applicable(question)],
    ids=str,
)
def test_the_needed_lead_is_the_smallest_that_is_likely(name: str, question: Question) -> None:
    prepared, leads = prepare(name, question), needed(name, question)
    assert leads.one is not None
    assert leads.every is not None
    assert chance(prepared, leads.one).one >= LIKELY > chance(prepared, leads.one - 1).one
    assert chance(prepared, leads.every).every >= LIKELY > chance(prepared, leads.every - 1).every


def test_the_lead_of_one_pick_in_closed_form() -> None:
    """k = 1, no composition: an item beats NOTHING with odds of 19 to 1, by Plackett–Luce."""
    question = Question.of(k=1, epsilon=1.0, k_bar=1)
    mechanism = prepare("limited-domain", question).mechanism
    lead = needed("limited-domain", question).one
    assert lead is not None

    def named(count: int) -> float:
        return mechanism.distribution(Histogram.of({"a": count}))[("a",)]

    assert named(lead) >= LIKELY > named(lead - 1)


def test_the_exact_lead_is_within_lemma_8_1() -> None:
    """Durfee & Rogers: k items are reported with 1 − β if they exceed t by ln(k/β)/ε₀.

    Exactly, for level items: by about ln(H_k/β)/ε₀, H_k the harmonic number.
    """
    question = Question.of(k=20, epsilon=1.0)
    prepared = prepare("limited-domain", question)
    price = float(prepared.parameters["epsilon_per_pick"])  # type: ignore[arg-type]
    share = float(prepared.parameters["threshold_delta"])  # type: ignore[arg-type]
    threshold = 1 + math.log(question.k_bar / share) / price
    lemma = threshold + math.log(20 / (1 - LIKELY)) / price
    level = threshold + math.log(sum(1 / j for j in range(1, 21)) / (1 - LIKELY)) / price
    every = needed("limited-domain", question).every
    assert every is not None
    assert every == pytest.approx(level, abs=2)
    assert every <= math.ceil(lemma)


def test_a_simulation_agrees_with_the_needed_lead() -> None:
    """At the lead of all, 400 runs name all k with .95 ± .05 (4.6 standard errors)."""
    question = Question.of(k=3, epsilon=1.0)
    for name in ("limited-domain", "tested"):
        prepared, lead = prepare(name, question), needed(name, question).every
        assert lead is not None
        rest = prepared.rows
        histogram = Histogram.of({n: 9 + (lead if n < 3 else 0) for n in range(rest)})
        bits = ReplayableBits(name.encode())
        complete = [len(prepared.mechanism.select(histogram, bits).items) for _ in range(400)]
        assert abs(complete.count(3) / 400 - LIKELY) < 0.05


def test_an_answer_is_seldom_empty_at_the_lead_that_the_plan_names() -> None:
    """A bound from below: 300 runs at that lead are empty in at most 5% and 4 deviations."""
    question = Question.of(k=10, epsilon=1.0)
    prepared, leads = prepare("tested", question), needed("tested", question)
    assert leads.any_answer is not None
    assert leads.every is not None
    assert leads.any_answer < leads.every
    level = {n: 9 + (leads.any_answer if n < 10 else 0) for n in range(prepared.rows)}
    histogram, bits = Histogram.of(level), ReplayableBits(b"any")
    empty = sum(not prepared.mechanism.select(histogram, bits).items for _ in range(300))
    assert empty / 300 < 0.1


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"k": 1}, "limited-domain"),
        ({"k": 3}, "limited-domain"),
        ({"k": 4}, "tested-or-weighted"),
        ({"k": 4, "choose": "public"}, "tested"),
        ({"k": 10, "choose": "public"}, "tested"),
        ({"k": 10, "k_bar": 10}, "limited-domain"),
        ({"k": 10, "max_items": 1}, "limited-domain-laplace"),
        ({"k": 10, "max_items": 20, "choose": "public"}, "tested"),
        ({"k": 10, "choose": "private"}, "tested-or-weighted"),
        ({"k": 10, "max_items": 20}, "tested-or-weighted"),
        ({"k": 10, "max_items": 3}, "weighted"),
        ({"k": 10, "epsilon": 50.0}, "limited-domain"),
        ({"k": 1, "domain_size": 100}, "permute-and-flip"),
        ({"k": 10, "domain_size": 1000}, "pruned"),
        ({"k": 10, "domain_size": 1000, "max_items": 4}, "pruned"),
        ({"k": 10, "domain_size": 1000, "max_items": 3}, "weighted"),
        ({"k": 10, "domain_size": 1000, "max_items": 3, "choose": "public"}, "pruned"),
        ({"k": 10, "domain_size": 1000, "max_items": 3, "delta": 0}, "canonical-set"),
        ({"k": "auto"}, "stable"),
    ],
)
def test_the_rule_recommends_by_public_numbers(numbers: dict[str, object], expected: str) -> None:
    question = Question.of(**({"epsilon": 1.0} | numbers))  # type: ignore[arg-type]
    assert recommend(question).name == expected


@pytest.mark.parametrize(
    "question", [Question.of(k=k, epsilon=1.0, choose="public") for k in (1, 3, 8)], ids=str
)
def test_the_recommended_one_needs_the_smallest_lead(question: Question) -> None:
    """Also where the rule skips a calibration because a bound decides."""
    leads = {name: needed(name, question).one for name in competing(question)}
    assert leads[recommend(question).name] == min(leads.values())  # type: ignore[type-var]


def test_rough_prices_are_near_the_calibrated_ones() -> None:
    rough = rough_schedule(10, 1.0, 1e-6)
    exact = prepare("tested", Question.of(k=10, epsilon=1.0)).mechanism.schedule  # type: ignore[attr-defined]
    for guess, length in zip(rough.lengths, exact.lengths, strict=True):
        assert guess.test == length.test
        assert 0.9 < float(guess.price / length.price) < 1.05


@pytest.mark.parametrize("numbers", [{"k": 1}, {"k": 8}, {"k": 3, "domain_size": 100}], ids=str)
def test_the_reverse_question(numbers: dict[str, int]) -> None:
    question = Question.of(epsilon=1.0, **numbers)  # type: ignore[arg-type]
    epsilon = smallest_epsilon(question, 200)
    enough = question.at(epsilon)
    less = question.at(round(epsilon - (0.001 if epsilon <= 0.1 else 0.01), 4))
    reached, missed = (needed(recommend(q).name, q).one for q in (enough, less))
    assert reached is not None
    assert missed is not None
    assert reached <= 200 < missed


def test_an_impossible_lead_is_refused() -> None:
    with pytest.raises(InvalidParameter) as caught:
        plan(k=10, needed_lead=1)
    assert str(caught.value) == (
        "needed_lead=1 cannot be reached with epsilon up to 10; "
        "raise needed_lead, raise delta or lower k"
    )


def test_a_plan_has_no_way_to_be_given_a_private_source() -> None:
    """Every parameter is a number, a word, a made-up shape or counts that are public already."""
    assert set(inspect.signature(plan).parameters) == {
        *("k", "epsilon", "delta", "k_bar", "max_items", "domain_size", "needed_lead"),
        *("shape", "public_counts", "runs", "progress", "ordered", "fill", "choose", "at_least"),
        *("measure", "max_per_item", "max_total", "public_amounts"),
    }
    for source in (Histogram.of({"a": 3}), "events.csv", {"a": 3}, b"\x00"):
        with pytest.raises(InvalidParameter, match="a private source has no place in a plan"):
            plan(k=1, epsilon=1.0, public_counts=source)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="a private source has no place in a plan"):
            plan(k=1, epsilon=1.0, measure="rows", public_amounts=source)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="whole numbers of at least 0; found '7'"):
        plan(k=1, epsilon=1.0, public_counts=["7"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 3}, "give either epsilon=1.0, say, or needed_lead=200, say"),
        (
            {"k": 3, "epsilon": 1, "needed_lead": 9},
            "give either epsilon=1.0, say, or needed_lead=200, say",
        ),
        ({"k": 3, "needed_lead": 0}, "needed_lead=0 must be at least 1; raise it"),
        (
            {"k": 3, "epsilon": 1, "shape": Zipf(1.0, 9, 9), "public_counts": [1]},
            "give either shape=… or public_counts=…, not both",
        ),
        (
            {"k": 1, "epsilon": 1, "public_counts": [1], "runs": 1},
            "runs=1 must be a whole number of at least 2",
        ),
        (
            {"k": 1, "epsilon": 1, "domain_size": 2, "public_counts": [3, 2, 1]},
            "the shape has 3 items and the public domain 2; raise domain_size or shorten the shape",
        ),
    ],
)
def test_mistakes_say_the_fix(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        plan(**arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_shapes_are_checked() -> None:
    assert Zipf(0.0, 4, 100, 1).counts() == [25] * 4
    assert Zipf(1.0, 1, 100, 1).counts() == [100]
    for bad in ((-1.0, 4, 100, 1), (1.0, 0, 100, 1), (1.0, 4, 100, 0), (1.0, 10**8, 100, 1)):
        with pytest.raises(InvalidParameter):
            Zipf(*bad)


def test_a_simulation_counts_what_was_found() -> None:
    counts = [9000, 8000, 7000, 4, 3, 2, 1]
    found = simulate(UNKNOWN, ["limited-domain", "tested"], counts, runs=3)
    assert [(row.mean, row.named, row.error) for row in found] == [(1.0, 3.0, 0.0)] * 2
    nothing = simulate(Question.of(k=3, epsilon=1.0, delta=1e-9), ["tested"], [1, 1], runs=3)
    assert nothing[0].mean == 0.0
    half = simulate(Question.of(k=2, epsilon=1.0), ["limited-domain"], [9000, 1], runs=3)
    assert half[0].mean == 0.5
    tied = simulate(PUBLIC, ["gumbel"], [9000] * 6, runs=3)
    assert tied[0].mean == 1.0


def test_no_module_takes_the_place_of_the_function() -> None:
    from topsecret import planning

    plan(k=1, epsilon=1.0)
    assert planning.plan is plan


def test_an_example_keeps_to_the_cap() -> None:
    made = plan(k=1, epsilon=1.0, max_items=2, shape=Zipf(1.0, 50, 900, events=5), runs=2)
    assert made.shape.endswith("900 people with 2 events each")


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    plan(
        k=1,
        epsilon=1.0,
        public_counts=[900, 3],
        runs=2,
        progress=lambda what, done, total: told.append((what, done, total)),
    )
    assert ("calibrating limited-domain", 1, 8) in told
    assert told[-1] == ("simulating stable-fixed-k", 15, 16)


@pytest.fixture(scope="module")
def made():
    return plan(k=3, epsilon=1.0, public_counts=[900, 800, 700, 3, 2, 1], runs=5)


def test_a_plan_reads_well(made) -> None:
    text = str(made)
    assert text.startswith("Plan for the top 3 at epsilon = 1, delta = 1e-06, unknown domain")
    assert "\n* limited-domain " in text
    assert "Recommended: limited-domain; an item of the top 3 is named with 95%" in text
    words = " ".join(text.split())  # lines end where they are full
    assert (
        "An empty place ends the list: the next items are, or seem with noise, too close" in words
    )
    assert "scale 20: 73 picks or 24 lists of 3" in text
    assert "Expected recall on an example, public counts of 6 items (5 runs):" in text
    assert "█" * 40 + "  1.000 ± 0.000" in text
    assert max(len(line) for line in text.splitlines()) < 120
    assert repr(made).startswith("<Plan for the top 3")


def test_leads_are_of_people_and_one_pick_is_one() -> None:
    small = plan(k=10, epsilon=0.61)
    assert small.noun == "people"
    assert "people each" in " ".join(str(small).split())
    assert "scale 5: 1 pick; scale 10: 7 picks;" in small.holding


def test_who_competes_as_the_table_says() -> None:
    """The first row of the table of docs/planning.md."""

    def rivals(k: int, cap: int | None = None) -> set[str]:
        return set(competing(Question.of(k=k, epsilon=1.0, max_items=cap)))

    assert rivals(3) == {"limited-domain"}
    assert rivals(3, 5) == {"limited-domain", "limited-domain-laplace"}
    assert rivals(3, 3) == {"limited-domain", "limited-domain-laplace", "weighted"}
    assert rivals(4, 3) == {"tested", "limited-domain-laplace", "weighted"}


def test_a_plan_is_plain_values(made) -> None:
    record = json.loads(made.to_json())
    assert record == made.to_dict()
    assert record["recommended"] == made.recommended == "limited-domain"
    assert record["question"]["k"] == 3
    assert [row["name"] for row in record["options"]] == [row["name"] for row in record["recalls"]]
    assert all(row["epsilon"] <= 1 for row in record["options"])


def test_a_plan_does_not_change(made) -> None:
    with pytest.raises(FrozenInstanceError):
        made.runs = 7
    with pytest.raises(KeyError):
        made["guess"]


def test_a_plan_in_a_notebook(made) -> None:
    page = made._repr_html_()
    assert "<caption>Plan for the top 3" in page
    assert "<td>limited-domain</td>" in page
    assert "width:200px" in page


def test_a_plan_can_be_drawn(made) -> None:
    pytest.importorskip("matplotlib")
    figure = made.plot()
    assert [axis.get_title() for axis in figure.axes] == ["needed lead", "recall on the example"]


def test_drawing_without_the_extra_says_how_to_get_it(made, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra) as caught:
        made.plot()
    assert str(caught.value) == (
        "plot() needs matplotlib; install it with: pip install '.[plot]' in the checkout"
    )


def test_the_plotting_library_is_imported_only_when_used() -> None:
    code = (
        "import sys, topsecret; topsecret.plan(k=1, epsilon=1.0); "
        "print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
