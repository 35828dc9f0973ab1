"""What plans say of a private length, against the exact laws."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from topsecret import plan
from topsecret.counts.histogram import Histogram
from topsecret.mechanisms import CanonicalSet, OneshotPrivateLength
from topsecret.planning import chances
from topsecret.planning.private_length import found

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("kind", [CanonicalSet, OneshotPrivateLength])
@pytest.mark.parametrize("lead", [1, 6, 30])
def test_the_chances_are_those_of_the_law(kind, lead):
    """Two items that lead three of count 0; the first one level with the second, or far ahead."""
    mechanism = kind(2, 1.0, ranks=(3,))
    ahead = mechanism.distribution(Histogram.from_counts([10**6, lead, 0, 0, 0]))
    level = mechanism.distribution(Histogram.from_counts([lead, lead, 0, 0, 0]))
    found = chances.of(mechanism, lead, 2, 3)
    named = math.fsum(p for (_, *items), p in ahead.items() if 1 in items)
    both = math.fsum(p for (_, *items), p in level.items() if {0, 1} <= set(items))
    assert found.one == pytest.approx(named, abs=1e-6)
    assert found.every == pytest.approx(both, abs=1e-6)


def test_what_is_found_is_what_the_law_names():
    counts = [9, 7, 7, 4, 2, 1]
    mechanism = CanonicalSet(3, 1.5, ranks=(4,))
    histogram = Histogram.from_counts(counts)
    law = mechanism.distribution(histogram)
    filled = CanonicalSet(3, 1.5, ranks=(4,), fill=True).distribution(histogram)
    seen = found(mechanism, histogram, 3)
    top = {0, 1, 2}
    assert seen.named == pytest.approx(sum(p * o[0] for o, p in law.items()))
    assert seen.right == pytest.approx(sum(p * len(top & set(o[1:])) for o, p in law.items()))
    assert seen.filled == pytest.approx(sum(p * len(top & set(o[1:])) for o, p in filled.items()))
    assert seen.whole == pytest.approx(sum(p for o, p in law.items() if top == set(o[1:])))
    assert seen.last == pytest.approx(sum(p for o, p in law.items() if 2 in o[1:]), rel=0.2)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"k": 10, "domain_size": 100}, "canonical-set"),
        ({"k": 10, "domain_size": 99}, "permute-and-flip"),
        ({"k": 9, "domain_size": 10**6}, "permute-and-flip"),
        ({"k": 50, "domain_size": 10**18}, "canonical-set"),
        ({"k": 50, "domain_size": 10**6, "ordered": True}, "oneshot-private-length"),
        ({"k": 50, "domain_size": 10**6, "ordered": True, "fill": True}, "permute-and-flip"),
        ({"k": 50, "domain_size": 10**6, "fill": True}, "canonical-set"),
    ],
)
def test_the_public_rule_without_a_delta(asked, expected):
    made = plan(epsilon=0.4, delta=0, **asked)
    assert made.recommended == expected
    assert {option.name for option in made.options} <= {
        "permute-and-flip",
        "oneshot-exponential",
        "oneshot-laplace",
        "canonical-set",
        "oneshot-private-length",
    }
    assert all(option.epsilon <= 0.4 for option in made.options)
    assert "no delta" in made.title
    assert "add up" in made.holding


def test_the_plan_warns_of_what_the_set_loses():
    """The cells of the experiment in which it loses more than .05 where the rule takes it."""
    warning = plan(k=10, epsilon=0.4, delta=0, domain_size=1000).sentences[0]
    assert "docs/results/e10-pure.md" in warning
    lost = []
    with (RESULTS / "e10-pure.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            k, mine = int(row["k"]), float(row["canonical set"])
            other = max(float(row["oneshot exponential"]), float(row["oneshot laplace"]))
            if k >= 10 and int(row["items"]) >= 10 * k and mine < other - 0.05:
                lost.append((row["data"].split()[0], k, float(row["epsilon"]), mine, other))
    assert len(lost) == 2
    for name, k, epsilon, mine, other in lost:
        assert f"{name} (k = {k}, epsilon = {epsilon:g})" in warning
        assert f"{mine:.2f}" in warning
        assert f"{other:.2f}" in warning
        assert k == 10


def test_the_smallest_epsilon_without_a_delta():
    made = plan(k=10, needed_lead=300, delta=0, domain_size=200)
    assert made.recommended == "canonical-set"
    lead = made["canonical-set"].needed_lead
    assert lead is not None
    assert lead <= 300
