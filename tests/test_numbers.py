"""Numbers in sentences are computed here, so that a page cannot go stale."""

import csv
import math
from fractions import Fraction
from itertools import pairwise

import pytest

from pages import ROOT
from pages import UNLINKED as PAGES
from topsecret import Histogram, plan
from topsecret.accounting import failure, gaussian, picks
from topsecret.calibration import prepare
from topsecret.calibration.question import Question
from topsecret.calibration.unknown_domain import even_lead, likely_lead
from topsecret.mechanisms import LimitedDomain, TestedOrWeighted
from topsecret.mechanisms.pick_prune_test import survivor_law
from topsecret.mechanisms.tested_schedule import Length
from topsecret.sources.demo_data import PERSONS, ROWS

CHOOSING = PAGES["docs/choosing.md"]
PLANNING = PAGES["docs/planning.md"]
ACCOUNTING = PAGES["docs/accounting.md"]


def lead(**question: object) -> int:
    made = plan(**question)  # type: ignore[arg-type]
    found = made[made.recommended].needed_lead
    assert found is not None
    return found


def recommended(**question: object) -> str:
    return plan(**question).recommended  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [5, 10, 50])
def test_the_leads_for_an_epsilon(k: int) -> None:
    leads = [lead(k=k, epsilon=epsilon) for epsilon in (0.2, 0.5, 1.0, 2.0)]
    assert f"| k = {k} | {' | '.join(map(str, leads))} |" in CHOOSING
    assert all(1.7 < more / less < 2.5 for more, less in pairwise(leads))


def test_what_else_lowers_a_lead() -> None:
    usual = lead(k=10, epsilon=1.0)
    public = lead(k=10, epsilon=1.0, domain_size=5000)
    assert f"the lead for ten of 5,000 items is {public} instead of {usual}" in CHOOSING
    careful = lead(k=10, epsilon=1.0, delta=1e-9)
    assert f"10⁻⁹ costs a lead of {careful} instead of {usual}" in CHOOSING
    one, three, six = (lead(k=10, epsilon=1.0, max_items=cap) for cap in (1, 3, 6))
    assert f"falls from {usual} to {one}, with 3 to {three}. (The last number is no" in CHOOSING
    free, capped = (plan(k=10, epsilon=1.0, max_items=cap) for cap in (None, 3))
    assert free["tested"].needed_lead == capped["tested"].needed_lead
    some = [made["limited-domain"].needed_lead for made in (free, capped)]
    assert (
        f"`limited-domain` gains some (its lead falls from {some[0]} to {some[1]} with 3)"
        in CHOOSING
    )
    weighted = plan(k=10, epsilon=1.0)["weighted"].needed_lead
    assert (
        f"an item with {weighted} weighted people passes the threshold with 95% probability"
        in CHOOSING
    )
    assert six == usual
    capped = [recommended(k=10, epsilon=1.0, max_items=n) for n in (1, 2, 3, 4)]
    assert capped == ["limited-domain-laplace", "weighted", "weighted", "tested-or-weighted"]
    assert "with one item per person `limited-domain-laplace`, with 2 or 3 `weighted`" in PLANNING
    assert "With at most 3 items per person all weights are whole people" in PLANNING


def test_the_numbers_beside_the_code() -> None:
    needed = plan(k=10, needed_lead=200).epsilon
    tested = plan(k=10, epsilon=1.0)["tested"].needed_lead
    capped = plan(k=10, epsilon=1.0, max_items=3)
    assert f'["tested"].needed_lead  # {tested} people more' in CHOOSING
    assert f"plan(k=10, needed_lead=200).epsilon  # {needed:g}: " in CHOOSING
    assert f"plan(k=10, needed_lead=200).epsilon  # {needed:g}: " in PLANNING
    assert f"capped.recommended  # {capped.recommended!r}" in CHOOSING
    assert f"needed_lead  # {capped[capped.recommended].needed_lead}\n" in CHOOSING
    preview = plan(k=10, epsilon=1.0)
    assert f"preview.recommended  # {preview.recommended!r}" in PLANNING
    assert f"needed_lead  # {preview['limited-domain'].needed_lead} people" in PLANNING


def test_three_leads_that_are_not_the_same() -> None:
    made = plan(k=10, epsilon=1.0)
    chosen, tested = made["tested-or-weighted"].needed_lead, made["tested"].needed_lead
    assert f"**{chosen}** (`topsecret plan`, the table above)" in CHOOSING
    assert "The other nine are far ahead, and all the rest" in CHOOSING
    assert f"An item with {chosen} more than the one of rank 1,601 alone" in CHOOSING
    assert f"**{tested}** is the same for `tested` alone" in CHOOSING
    longest = longest_list(10, 1.0)
    half, likely = math.ceil(even_lead(longest)), math.ceil(likely_lead(longest))
    words = f"**{half}** and **{likely}** (the receipt) are about the last step alone, and over"
    assert (
        f"{words} rank 1,601 alone: the list passes its test half of the time and 98% of the time."
        in CHOOSING
    )


def longest_list(k: int, epsilon: float) -> Length:
    mechanism = prepare("tested-or-weighted", Question.of(k=k, epsilon=epsilon)).mechanism
    assert isinstance(mechanism, TestedOrWeighted)
    return mechanism.branches.tested.schedule.lengths[0]


def certain(price: Fraction) -> float:
    """By how many people one of two items must lead for a pick to prefer it 95% of the time."""
    return math.log(19) / price


def test_how_near_is_nearly_level() -> None:
    longest, half = longest_list(10, 1.0), longest_list(10, 0.5)
    (few, least), (some, _), (_, price) = longest.levels
    assert few + some == 6  # from the seventh place on
    assert price == longest.price
    anywhere, late = math.ceil(certain(least)), math.ceil(certain(price))
    assert f"at least 95% of the time if one has **{anywhere}** more people than" in CHOOSING
    assert f"than the other; from the seventh place on **{late}** are enough" in CHOOSING
    assert f"than the eleventh 95% of the time if it has **{late}** more." in CHOOSING
    assert f"it takes the {lead(k=10, epsilon=1.0)} from above." in CHOOSING
    assert 1.8 < certain(half.price) / certain(price) < 2.2


def test_the_leads_of_level_items_are_those_of_the_exact_law() -> None:
    longest = longest_list(4, 1.0)
    apart = math.ceil(certain(longest.levels[0][1]))
    rest = [Fraction(lead) for lead in (9000, 8000, 1000, 1000)]
    first = [Fraction(10_000 + apart), Fraction(10_000), *rest]
    shape = (0, longest.levels, longest.prunes, longest.price)
    law = survivor_law(first, *shape)
    right = sum(float(chance) for kept, chance in law.items() if kept[:2] == (0, 1))
    assert 0.95 <= right < 0.96
    near = math.ceil(certain(longest.price))
    last = [*map(Fraction, (9000, 8000, 7000, 5000 + near, 5000, 1000))]
    law = survivor_law(last, *shape)
    kept = sum(float(chance) for kept, chance in law.items() if 3 in kept and 4 not in kept)
    assert 0.95 <= kept < 0.96


def test_who_wins_by_the_rule() -> None:
    """The table of docs/planning.md, and "from four items on" of docs/mechanisms.md."""
    asked = [recommended(k=k, epsilon=1.0) for k in (3, 4)]
    assert asked == ["limited-domain", "tested-or-weighted"]
    assert "`limited-domain` up to k = 3, then `tested-or-weighted`" in PLANNING
    assert 'what `mechanism="auto"` uses from four items on' in PAGES["docs/mechanisms.md"]
    public = [
        recommended(k=k, epsilon=1.0, max_items=cap, choose="public")
        for k, cap in ((3, None), (4, None), (10, 5), (10, 6))
    ]
    assert public == ["limited-domain", "tested", "limited-domain-laplace", "tested"]
    assert "`limited-domain` up to k = 3, then `tested`;" in PLANNING
    assert "with at most 5 items per person `limited-domain-laplace` at k = 10" in PLANNING
    found = [recommended(k=k, epsilon=1.0, domain_size=5000) for k in (1, 2, 4, 10)]
    assert found == ["permute-and-flip", "permute-and-flip", "pruned", "pruned"]
    assert "`permute-and-flip` for one or two items, `pruned` from a few items on" in PLANNING


def test_how_certain_somebody_can_become() -> None:
    for epsilon in (0.1, 0.5, 1, 2, 5):
        certain = math.ceil(1000 * math.exp(epsilon) / (1 + math.exp(epsilon))) / 1000
        assert f"| {epsilon} | {certain:.1%} |" in PAGES["docs/guarantee.md"]


def test_what_a_month_costs() -> None:
    one = picks(10, 0.1) + failure(1e-7)
    month = (4 * one + gaussian(0.01)).epsilon(1e-6)
    assert f"month.epsilon(1e-6)  # {math.floor(month * 100) / 100}…" in PAGES["docs/accounting.md"]
    fifty = picks(50, 0.1).epsilon(1e-6)
    words = (
        f"Fifty picks cost {fifty:.2f} only if it was fixed beforehand that there would be fifty"
    )
    assert f"{words} at 0.1 each." in ACCOUNTING


def test_how_far_to_look() -> None:
    with (ROOT / "docs" / "results" / "k-bar.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    recalls = [{name: float(row[name]) for name in row if name.endswith("k") and len(name) > 1}
               for row in rows]  # fmt: skip
    lost = [max(row.values()) - row["20k"] for row in recalls]
    near = sum(loss <= 0.03 for loss in lost)
    narrow = max(max(row.values()) - row["1k"] for row in recalls)
    words = "On nine real datasets the k̄ for `limited-domain` was [within .03 of the best recall]"
    words += f"(results/k-bar.md) in {near} of {len(rows)} settings and "
    words += f"{max(lost):.2f} below it in the worst, while k̄ = k lost up to {narrow:.2f}"
    assert words.replace("0.", ".") in PAGES["docs/notation.md"]


def superscript(number: int) -> str:
    return "".join("⁻" if sign == "-" else "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(sign)] for sign in str(number))


@pytest.mark.parametrize("persons", [1, 2, 4, 10])
def test_what_a_group_is_promised(persons: int) -> None:
    """m·ε, and δ times 1 + e^ε + … + e^((m − 1)·ε), rounded up to two digits."""
    cells = []
    for epsilon in (0.5, 1, 5):
        delta = 1e-6 * sum(math.exp(step * epsilon) for step in range(persons))
        power = math.floor(math.log10(delta))
        digits = math.ceil(delta / 10.0**power * 10 - 1e-9) / 10
        shown = f"{persons * epsilon:g} and {digits:.1f}·10{superscript(power)}"
        cells.append("no promise" if delta >= 1 else shown)
    assert f"| {persons} | {' | '.join(cells)} |" in PAGES["docs/guarantee.md"]
    if persons == 4:
        together = "ε = {} and δ = {};".format(*cells[1].split(" and "))
        assert f"a family of four has together {together}" in PAGES["docs/choosing.md"]


def test_four_persons_at_a_large_epsilon_may_well_be_named() -> None:
    """The chance of an item that four persons have, alone in the data, stays below the bound."""
    mechanism = LimitedDomain(k=1, k_bar=20, epsilon_per_pick=5.0, delta=1e-6)
    law = mechanism.distribution(Histogram.of({"rare": 4}))
    named = sum(chance for outcome, chance in law.items() if "rare" in outcome)
    assert named > 0.01
    for persons in (1, 2, 3):
        law = mechanism.distribution(Histogram.of({"rare": persons}))
        named = sum(chance for outcome, chance in law.items() if "rare" in outcome)
        assert named <= 1e-6 * sum(math.exp(5.0 * step) for step in range(persons))


def test_how_often_each_library_leads() -> None:
    best: dict[tuple[str, str, str], float] = {}
    path = ROOT / "docs" / "results" / "e7b-peer-sets.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for k in ("10", "50"):
                place = (k, row["data"], row["library"])
                best[place] = max(float(row[f"recall k={k}"]), best.get(place, 0))
    sets = {data for _, data, _ in best} - {"Demo (made up)"}
    libraries = {library for *_, library in best}
    rivals = {library for library in libraries if not library.startswith("topsecret")}

    def leads(library: str, others: set[str], k: str) -> int:
        return sum(
            best[k, data, library] >= max(best[k, data, other] for other in others) - 0.005
            for data in sets
        )

    text = PAGES["docs/why.md"]
    others = {5: "five"}[len(sets - {"Jakarta"})]
    assert f"[{others} others](docs/why.md#measured)" in PAGES["README.md"]
    assert f"about six, this one and {others} chosen by a rule" in text
    alone = [leads("topsecret", libraries, k) for k in ("10", "50")]
    assert f"on {alone[0]} of the {len(sets)} at k = 10 and on {alone[1]} at k = 50." in text
    counted = [leads("topsecret with counts", rivals, k) for k in ("10", "50")]
    assert f"each of them on {counted[0]} at k = 10 and on {counted[1]} at k = 50:" in text

    def ahead(k: str, data: str, first: str, second: str) -> str:
        return f"{best[k, data, first] - best[k, data, second]:.2f}".removeprefix("0")

    behind = [ahead("10", "New York 2019", "OpenDP", "topsecret")]
    behind += [ahead("50", "Groceries", "OpenDP", "topsecret")]
    behind += [ahead("10", "Bangkok", "topsecret with counts", "topsecret")]
    assert (
        f"OpenDP was {behind[0]} ahead on New York at k = 10 and {behind[1]} on Groceries" in text
    )
    assert f"at k = 50, and topsecret's own answers with counts {behind[2]} on Bangkok." in text
    less = {
        ahead("10", "New York 2019", "OpenDP", "topsecret with counts"),
        ahead("50", "BrightKite filtered", "SmartNoise SQL", "topsecret with counts"),
    }
    assert f"OpenDP leads on New York and SmartNoise on BrightKite, by {less.pop()} each." in text
    assert not less


def test_what_two_people_have_together() -> None:
    delta = math.ceil(1e-6 * (1 + math.e) * 1e7) / 1e7
    assert f"at ε = 1 and δ = 10⁻⁶ that is 2 and {delta * 1e6:.1f}·10⁻⁶" in ACCOUNTING


def test_the_numbers_of_the_first_page() -> None:
    readme = PAGES["README.md"]
    assert f"{PERSONS:,} people, {ROWS:,} check-ins" in readme
    assert f"{ROWS:,} made-up check-ins of {PERSONS:,} people" in PAGES["docs/quick-start.md"]
    with (ROOT / "docs" / "results" / "e7-peers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    best: dict[str, float] = {}
    for row in rows:
        recall = float(row["recall k=50"].split()[0])
        best[row["library"]] = max(recall, best.get(row["library"], 0))
    ours = best.pop("topsecret")
    low, high = min(best.values()), max(best.values())
    words = f"{ours:.2f}; four other libraries {low:.2f} to {high:.2f}, each with the"
    assert f"{words} best of three limits for the top 50" in readme
    assert f"the top 50 alone the others have {low:.2f} to {high:.2f}" in PAGES["docs/why.md"]
    assert len(best) == 4
    [seconds] = [row["median, s"] for row in rows if row["library"] == "topsecret"]
    assert f"the same question again, about 150,000 rows | {seconds} s" in readme
    assert f"in people, ε = 1 | {lead(k=10, epsilon=1.0)} to be named 95%" in readme


def test_what_the_default_of_pate_is_worth() -> None:
    """Nowhere more than .01 behind the best hard rule; tmc2007-500 as high as the page says."""
    runs: dict[tuple[str, str, str], list[float]] = {}
    path = ROOT / "docs" / "results" / "pate-sets.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["method"] != "soft, matched rates":
                cell = row["set"], row["epsilon"], row["method"].split(",")[0]
                runs.setdefault(cell, []).append(float(row["student F1"]))
    mean = {key: sum(found) / len(found) for key, found in runs.items()}
    cells = {(name, epsilon) for name, epsilon, _ in runs}
    assert len(cells) == 33
    assert all(len(found) == 5 for found in runs.values())
    for cell in cells:
        best = max(mean[(*cell, rule)] for rule in ("StableTopK", "PATE", "PATE-τ"))
        assert mean[(*cell, "soft")] >= best - 0.01, cell
    assert (
        "on eleven sets the soft student is nowhere more than .01 behind" in PAGES["docs/pate.md"]
    )
    for epsilon, least in (("2", 0.43), ("4", 0.45), ("8", 0.465)):
        assert mean["tmc2007-500", epsilon, "soft"] >= least


def test_two_experiments_of_pate_find_the_same() -> None:
    """E3b and E3c have nine settings in common, five seeds of each."""
    found: list[dict[tuple[str, ...], float]] = []
    for name, which in (("pate", ("votes", "real")), ("pate-sets", ("set", "tmc2007-500"))):
        path = ROOT / "docs" / "results" / f"{name}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row[which[0]] == which[1]]
        found.append(
            {(row["method"], row["epsilon"], row["seed"]): float(row["student F1"]) for row in rows}
        )
    both = found[0].keys() & found[1].keys()
    assert len(both) == 9 * 5
    assert max(abs(found[0][one] - found[1][one]) for one in both) < 1e-4
    assert "it has the same numbers, but for rounding" in PAGES["docs/results/pate.md"]
    assert "and so are the numbers of" in PAGES["docs/results/pate-sets.md"]


def test_what_a_ranking_by_strength_finds() -> None:
    with (ROOT / "docs" / "results" / "strength.csv").open(encoding="utf-8") as file:
        found = {
            row["contest"]: (float(row["found"]), int(row["runs"]))
            for row in csv.DictReader(file)
            if (row["method"], row["epsilon"]) == ("strength", "1")
        }
    assert {name: runs for name, (_, runs) in found.items()} == dict.fromkeys(found, 20)
    for contest, least in (("tennis", 0.95), ("football", 0.94), ("arena", 0.98)):
        assert found[contest][0] >= least
