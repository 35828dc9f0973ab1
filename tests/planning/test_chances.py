"""The chances that plans rest on, against the exact laws of the mechanisms in the scene."""

import math

import pytest

from topsecret.counts.histogram import Histogram
from topsecret.mechanisms import (
    FixedThreshold,
    GumbelTopK,
    LimitedDomain,
    LimitedDomainLaplace,
    Mechanism,
    OneshotExponential,
    OneshotLaplace,
    OptimalThreshold,
    PermuteAndFlip,
    PrunedTopK,
    StableFixedK,
    StableTopK,
    TestedTopK,
    TopStable,
)
from topsecret.mechanisms.selection import Outcome
from topsecret.planning import chances

# Items 0 and 1 are the top 2; the items 2, 3, … are tied at 5.
K, REST, BASE, FAR = 2, 3, 5, 10**4


def law_of(mechanism: Mechanism, first: int, second: int, rest: int) -> dict[Outcome, float]:
    """With ``rest`` items of the rest; one more where the domain is unknown, for rank k̄ + 1."""
    public = isinstance(mechanism, PUBLIC)
    counts = dict.fromkeys(range(2, K + rest + (0 if public else 1)), BASE)
    counts |= {0: BASE + first, 1: BASE + second}
    domain = range(K + rest) if public else None
    law = mechanism.distribution(Histogram.of(counts, domain=domain))
    assert math.isclose(math.fsum(law.values()), 1)
    return law


def exact(mechanism: Mechanism, lead: int, rest: int = REST) -> tuple[float, float]:
    """The probabilities of both scenes, from the mechanism's own law."""
    published = 1 if isinstance(mechanism, OptimalThreshold) or is_private(mechanism) else 0

    def chance(law: dict[Outcome, float], wanted: set[int]) -> float:
        return math.fsum(p for outcome, p in law.items() if wanted <= set(outcome[published:]))

    ahead, level = law_of(mechanism, FAR, lead, rest), law_of(mechanism, lead, lead, rest)
    return chance(ahead, {1}), chance(level, {0, 1})


def is_private(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, TestedTopK) and mechanism.lengths == "private"


PUBLIC = GumbelTopK | OneshotExponential | OneshotLaplace | PrunedTopK | PermuteAndFlip
EXACT: list[Mechanism] = [
    GumbelTopK(K, 4),
    OneshotExponential(K, 0.5),
    OneshotLaplace(K, 0.5),
    PermuteAndFlip(K, 3),
    PrunedTopK(K, 0.3),
    FixedThreshold(K, 0.4, 0.01),
    LimitedDomain(K, K + REST, 0.5, 0.001),
    LimitedDomain(K, K + REST, 0.5, 0.001, max_items=1),
    LimitedDomainLaplace(K, K + REST, 0.5, 0.001, 2),
    OptimalThreshold(K + 1, K + REST, 0.5, 0.001),
    TestedTopK(K, 4.0, 0.05, k_bar=K + REST),
    TestedTopK(K, 4.0, 0.05, k_bar=K + REST, lengths="fixed"),
]


@pytest.mark.parametrize("lead", [1, 4, 9, 20, 50])
@pytest.mark.parametrize("mechanism", EXACT, ids=str)
def test_chances_are_those_of_the_exact_law(mechanism: Mechanism, lead: int) -> None:
    found = chances.of(mechanism, lead, K, REST)
    one, every = exact(mechanism, lead)
    assert found.one == pytest.approx(one, abs=1e-5)
    assert found.every == pytest.approx(every, abs=1e-5)


@pytest.mark.parametrize("lead", [2, 8, 20])
@pytest.mark.parametrize(
    ("mechanism", "slack"),
    [
        (StableTopK(4, 0.5, 0.01), 0.01),
        (StableFixedK(K, 4, 0.5, 0.01, 0.5, delta=0.01), 0.02),
        (TopStable(K, 4, 2.0, 0.01, 1.0), 0.02),
    ],
    ids=["StableTopK", "StableFixedK", "TopStable"],
)
def test_sets_are_bounded_from_below(mechanism: Mechanism, slack: float, lead: int) -> None:
    """Sets that noise alone lets pass have at most their failure probability."""
    found = chances.of(mechanism, lead, K, 2)
    _, every = exact(mechanism, lead, rest=2)
    assert every - slack <= found.every <= every + 1e-5


@pytest.mark.parametrize("rest", [1, 2])
def test_a_small_domain_leaves_little_to_prune(rest: int) -> None:
    mechanism = PrunedTopK(K, 0.3)
    one, every = exact(mechanism, 4, rest)
    found = chances.of(mechanism, 4, K, rest)
    assert (found.one, found.every) == pytest.approx((one, every), abs=1e-9)


def test_an_unknown_mechanism_has_no_chances() -> None:
    with pytest.raises(TypeError, match="no chances are known for a str"):
        chances.of("guess", 1, 1, 1)
