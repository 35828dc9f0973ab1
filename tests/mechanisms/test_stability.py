"""StableTopK and StableFixedK: laws by independent means, samplers, claims, parameters."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise, permutations

import pytest
from scipy import integrate, stats
from tests.mechanisms.printed import OnPublicDomain

from topsecret.accounting import GaussianSelection, failure, gaussian, picks, pure, rdp, zcdp
from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.mechanisms import StableFixedK, StableTopK
from topsecret.mechanisms.selection import NOTHING
from topsecret.verify import check_privacy, check_sampler

COUNTS = {"a": 9, "b": 5, "c": 5, "d": 2}
CASES = [
    StableTopK(3, 0.5, 0.05),
    StableTopK(7, 0.5, 0.2),
    StableTopK(3, 0.5, 0.05, regulariser=lambda j: Fraction(-j, 3)),
    StableTopK(3, 0.5, 0.05, selection="gaussian"),
    StableTopK(3, 0.5, 0.05, test="laplace"),
    StableTopK(3, 0.5, 0.05, quantile="paper"),
    StableTopK(3, 2.0, 0.05, adjacency="replace"),
    StableTopK(3, 2.0, 0.05, test="laplace", selection="gaussian", adjacency="replace"),
]


def independent_law(mechanism, counts, domain=None):
    """The statement of ``stability.py`` in floats, with SciPy's distributions and quadrature."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    names = [item for item, count in ranked if count > 0]
    places = mechanism.k_bar if domain is None else min(mechanism.k_bar, len(domain) - 1)
    values = [count for _, count in ranked if count > 0] + [0] * (places + 1)
    gaps = [a - b for a, b in pairwise(values[: places + 1])]
    reach = 1 if mechanism.adjacency == "add-remove" else 2
    root = math.sqrt(mechanism.rho)
    r = mechanism.regulariser
    bonus = [float(r(j)) if callable(r) else 0.0 for j in range(1, places + 1)]
    scores = [gap + extra for gap, extra in zip(gaps, bonus, strict=True)]
    if mechanism.selection == "gumbel":
        weights = [math.exp(score * root / reach) for score in scores]
        chosen = [weight / sum(weights) for weight in weights]
    else:
        deviation = reach * math.sqrt(min(mechanism.k_bar, 4)) / root
        chosen = [_normal_wins(scores, place, deviation) for place in range(places)]
    law = defaultdict(float)
    for place, chance in enumerate(chosen):
        lead = max(reach, gaps[place]) - reach
        scale = reach / root
        if mechanism.test == "laplace":
            passed = stats.laplace.sf(math.log(1 / (2 * mechanism.failure)) - lead / scale)
        elif mechanism.quantile == "paper":
            passed = stats.norm.cdf(lead / scale - math.sqrt(2 * math.log(1 / mechanism.failure)))
        else:
            passed = stats.norm.cdf(lead / scale - stats.norm.isf(mechanism.failure))
        law[tuple(sorted(names[: place + 1]))] += chance * passed
        law[(NOTHING,)] += chance * (1 - passed)
    return law


def _normal_wins(scores, place, deviation):
    def density(x):
        value = stats.norm.pdf(x, scores[place], deviation)
        for other, score in enumerate(scores):
            if other != place:
                value *= stats.norm.cdf(x, score, deviation)
        return value

    spread = 12 * deviation
    return integrate.quad(density, scores[place] - spread, scores[place] + spread, limit=200)[0]


def agree(law, expected):
    assert set(law) == set(expected)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    for outcome, chance in expected.items():
        assert law[outcome] == pytest.approx(chance, abs=1e-9)


@pytest.mark.parametrize("mechanism", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("counts", [COUNTS, {}, {"a": 1}, {"a": 3, "b": 3, "c": 3, "d": 3, "e": 3}])
def test_the_law_is_the_definition(mechanism, counts):
    agree(mechanism.distribution(Histogram.of(counts)), independent_law(mechanism, counts))


def test_on_a_public_domain_the_last_place_has_no_gap():
    mechanism, domain = CASES[1], ["a", "b", "c", "d"]
    law = mechanism.distribution(Histogram.of(COUNTS, domain))
    agree(law, independent_law(mechanism, COUNTS, domain))
    assert ("a", "b", "c", "d") not in law


@pytest.mark.parametrize("mechanism", CASES, ids=range(len(CASES)))
def test_the_sampler_draws_the_law(mechanism):
    """Alarm rate 10⁻⁷ for each of eight."""
    check_sampler(mechanism, Histogram.of(COUNTS), 2000, alarm_rate=1e-7).require()


@pytest.mark.parametrize("counts", [{}, {"a": 2}, {"a": 4, "b": 4, "c": 4}])
def test_the_sampler_draws_the_law_on_few_items_and_ties(counts):
    """Alarm rate 10⁻⁷ for each of three; k̄ exceeds the observed items."""
    check_sampler(StableTopK(6, 1.0, 0.3), Histogram.of(counts), 3000, alarm_rate=1e-7).require()


def test_a_sampler_with_another_scale_is_rejected():
    class Louder(StableTopK):
        def select(self, histogram, bits=None):
            return StableTopK(self.k_bar, self.rho * 2, self.failure).select(histogram, bits)

    report = check_sampler(Louder(3, 0.5, 0.05), Histogram.of(COUNTS), 4000)
    assert not report.passed


@pytest.mark.parametrize("mechanism", [CASES[0], CASES[1], CASES[6]], ids=range(3))
def test_the_claim_holds_on_public_domains(mechanism):
    check_privacy(OnPublicDomain(mechanism), items=4, max_count=4).require()


@pytest.mark.parametrize("mechanism", CASES, ids=range(len(CASES)))
def test_the_claim_holds_on_unknown_domains(mechanism):
    check_privacy(mechanism, items=3, max_count=4).require()


def test_losses_are_kept_in_their_strongest_form():
    delta = Fraction(1, 16)
    assert StableTopK(3, 0.25, delta).loss == picks(1, 1) + gaussian(0.25) + failure(delta)
    assert StableTopK(3, 0.25, delta, adjacency="replace").loss == StableTopK(3, 0.25, delta).loss
    laplace = StableTopK(3, 0.25, delta, test="laplace").loss
    assert laplace == picks(1, 1) + pure(0.5) + failure(delta)
    normal = StableTopK(9, 0.25, delta, selection="gaussian").loss
    curve = GaussianSelection(9, Fraction(16))
    assert normal == rdp("Gaussian selection", curve) + gaussian(0.25) + failure(delta)
    fixed = StableFixedK(2, 3, 0.5, delta, 1).loss
    assert fixed == StableTopK(3, 0.25, delta).loss + zcdp(0.25)


@pytest.mark.parametrize("rho", [0.3, 1e-9, 7.0, Fraction(1, 3)])
def test_rounding_never_spends_more_than_rho(rho):
    """The root is rounded up, so the exact rational cost is at most ρ, and hardly below."""
    loss = StableTopK(5, rho, 1e-6).loss
    ((count, price),) = loss.pick_runs
    spent = count * price**2 / 8 + loss.mu_squared / 2
    assert Fraction(rho) * (1 - Fraction(1, 10**15)) < spent <= Fraction(rho)


def test_one_candidate_is_no_choice_and_costs_nothing():
    assert StableTopK(1, 0.25, 0.05).loss == gaussian(0.25) + failure(0.05)


def test_nineteen_items_above_a_drop_are_found_and_a_flat_histogram_gives_nothing():
    """Example A/B: alarm below 10⁻⁶ (P[miss] < .004 each; at most 5 of 60 are let pass)."""
    mechanism = StableTopK(k_bar=40, rho=0.05, failure=1e-6)
    assert mechanism.loss.epsilon(2e-6) < 2
    top = {f"top {i:02}": 100 - i % 4 for i in range(19)}
    rest = {f"rest {i:02}": 54 - i // 2 for i in range(60)}
    histogram = Histogram.of(top | rest)
    assert mechanism.distribution(histogram)[tuple(top)] > 0.996
    answers = [mechanism.select(histogram) for _ in range(60)]
    found = [answer for answer in answers if set(answer.items) == set(top)]
    assert len(found) >= 55
    assert found[0].complete
    assert not found[0].ordered
    flat = Histogram.of({f"item {i:02}": 100 for i in range(60)})
    assert mechanism.distribution(flat)[(NOTHING,)] == pytest.approx(1 - 1e-6, abs=1e-12)
    for _ in range(40):
        assert StableTopK(k_bar=40, rho=0.05, failure=1e-9).select(flat).outcome == (NOTHING,)


def test_an_unordered_answer_is_published_in_canonical_order():
    counts = {"z": 9000, "m": 8000, "a": 7000, "b": 1}
    answer = StableTopK(3, 1.0, 1e-6).select(Histogram.of(counts))
    assert list(answer.items) == sorted(answer.items)
    refined = StableFixedK(3, 4, 1.0, 1e-6, 1, delta=1e-6).select(Histogram.of(counts))
    assert refined.items == ("a", "m", "z")
    assert not refined.ordered


# StableFixedK


def picks_law(weights, count):
    law = defaultdict(float)
    for order in permutations(weights, count):
        left, chance = sum(weights.values()), 1.0
        for item in order:
            chance *= weights[item] / left
            left -= weights[item]
        law[frozenset(order)] += chance
    return law


@pytest.mark.parametrize("k", [1, 2, 3])
def test_fixed_k_on_a_public_domain_is_its_definition(k):
    counts, domain = {"a": 6, "b": 4, "c": 1}, ["a", "b", "c", "d"]
    mechanism = StableFixedK(k, 3, 0.8, 0.1, 0.25)
    ranked = [*counts, "d"]
    stable = StableTopK(3, 0.4, 0.1, regulariser=lambda j: -0.25 * abs(j - k))
    expected = defaultdict(float)
    for outcome, chance in independent_law(stable, counts, domain).items():
        length = 0 if outcome == (NOTHING,) else len(outcome)
        kept, left = set(ranked[:length]), ranked
        if length > k:
            kept, left = set(), ranked[:length]
        elif length:
            left = ranked[length:]
        count = k - len(kept)
        price = 2 * math.sqrt(0.8 / count) if count else 0
        weights = {item: math.exp(price * counts.get(item, 0)) for item in left}
        for chosen, more in picks_law(weights, count).items():
            expected[tuple(sorted(kept | chosen))] += chance * more
    agree(mechanism.distribution(Histogram.of(counts, domain)), expected)


FIXED = [
    (StableFixedK(2, 3, 0.8, 0.1, 0.25), {"a": 6, "b": 4, "c": 1}, ["a", "b", "c", "d", "e"]),
    (StableFixedK(3, 6, 0.8, 0.3, 0), {"a": 2, "b": 2}, ["a", "b", "c", "d"]),
    (StableFixedK(2, 3, 0.8, 0.1, 0.25, delta=0.1), {"a": 6, "b": 4, "c": 1, "d": 1}, None),
    (StableFixedK(2, 5, 2.0, 0.3, 0, delta=0.2), {"a": 4, "b": 4, "c": 4, "d": 4}, None),
    (StableFixedK(2, 5, 2.0, 0.3, 0, delta=0.2), {}, None),
]


@pytest.mark.parametrize(("mechanism", "counts", "domain"), FIXED, ids=range(len(FIXED)))
def test_the_sampler_of_fixed_k_draws_the_law(mechanism, counts, domain):
    """Alarm rate 10⁻⁷ for each of five."""
    check_sampler(mechanism, Histogram.of(counts, domain), 2000, alarm_rate=1e-7).require()


@pytest.mark.parametrize("case", StableFixedK.verification_cases(), ids=range(4))
def test_the_claim_of_fixed_k_holds(case):
    check_privacy(case, items=4, max_count=3).require()


def test_without_a_delta_a_public_domain_is_needed():
    with pytest.raises(DomainRequired, match="StableFixedK without a delta names any item"):
        StableFixedK(1, 2, 0.5, 0.05, 1).select(Histogram.of({"a": 3}))


def test_k_may_not_exceed_the_public_domain():
    with pytest.raises(InvalidParameter, match="k=3 must be at most the 2 items"):
        StableFixedK(3, 4, 0.5, 0.05, 1).select(Histogram.of({}, domain=["a", "b"]))


def test_a_domain_of_one_item_has_no_gap():
    with pytest.raises(InvalidParameter, match="the public domain has 1 items; a gap needs"):
        StableTopK(2, 0.5, 0.05).select(Histogram.of({}, domain=["a"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k_bar": 0}, "k_bar=0 must be at least 1; raise k_bar"),
        ({"k_bar": 2.5}, "k_bar=2.5 must be a whole number"),
        ({"rho": 0}, "rho=0 must be above 0; raise rho"),
        ({"rho": math.inf}, "rho=inf must be finite"),
        ({"failure": 1}, "failure=1 must lie between 0 and 1, such as 1e-6"),
        ({"selection": "em"}, "selection='em' must be 'gumbel' or 'gaussian'"),
        ({"test": "t"}, "test='t' must be 'gaussian' or 'laplace'"),
        ({"quantile": "z"}, "quantile='z' must be 'exact' or 'paper'"),
        ({"test": "laplace", "quantile": "paper"}, "quantile='paper' belongs to test='gaussian'"),
        ({"adjacency": "swap"}, "adjacency='swap' must be 'add-remove' or 'replace'"),
        ({"regulariser": [1, 2]}, "regulariser has 2 entries; it must have k_bar=3"),
        ({"regulariser": lambda j: math.nan}, r"regulariser\(1\)=nan must be finite"),
    ],
)
def test_bad_parameters_of_stable_top_k(change, message):
    with pytest.raises(InvalidParameter, match=message):
        StableTopK(**({"k_bar": 3, "rho": 0.5, "failure": 0.05} | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 4}, "k=4 must be at most k_bar=3; raise k_bar or lower k"),
        ({"closeness": -1}, "closeness=-1 must be at least 0; raise closeness"),
        ({"delta": 0}, "delta=0 must lie between 0 and 1"),
        ({"rho": -2}, "rho=-2 must be above 0"),
    ],
)
def test_bad_parameters_of_stable_fixed_k(change, message):
    good = {"k": 2, "k_bar": 3, "rho": 0.5, "failure": 0.05, "closeness": 1}
    with pytest.raises(InvalidParameter, match=message):
        StableFixedK(**(good | change))
