"""Mechanisms as OpenDP measurements, in OpenDP itself."""

import itertools
import math

import opendp.prelude as dp
import pytest

from topsecret import Histogram
from topsecret.errors import InvalidParameter
from topsecret.interop.opendp import approximate_measurement, zcdp_measurement
from topsecret.mechanisms import (
    ClippedSums,
    GumbelTopK,
    LimitedDomain,
    LimitedDomainLaplace,
    StableTopK,
    TestedOrWeighted,
    TestedTopK,
)

dp.enable_features("contrib", "honest-but-curious")
GUMBEL = GumbelTopK(k=2, scale=2)
LIMITED = LimitedDomain(k=2, k_bar=2, epsilon_per_pick=0.7, delta=0.01)


def test_the_answer_is_places_in_the_list() -> None:
    measurement = zcdp_measurement(GumbelTopK(k=2, scale=1), size=4)
    assert measurement([3, 9000, 0, 700]) == [1, 3]


def test_a_list_that_ends_early_is_shorter() -> None:
    mechanism = LimitedDomain(k=2, k_bar=3, epsilon_per_pick=1, delta=1e-30)
    assert approximate_measurement(mechanism, size=3, delta=1e-6)([900, 2, 1]) == [0]


def test_the_measurement_says_what_distances_mean() -> None:
    measurement = zcdp_measurement(GUMBEL, size=4)
    assert measurement.input_metric == dp.linf_distance(T="u32", monotonic=True)
    both_ways = zcdp_measurement(GumbelTopK(k=2, scale=2, adjacency="replace"), size=4)
    assert both_ways.input_metric == dp.linf_distance(T="u32", monotonic=False)


def test_one_person_costs_the_loss() -> None:
    assert zcdp_measurement(GUMBEL, size=4).map(1) == (GUMBEL.loss.rho(), 0.0)
    expected = (LIMITED.loss.epsilon(0.02), 0.02)
    assert approximate_measurement(LIMITED, size=4, delta=0.02).map(1) == expected


def test_failures_are_part_of_the_map() -> None:
    stable = StableTopK(k_bar=3, rho=0.25, failure=1e-6)
    assert zcdp_measurement(stable, size=4).map(1) == (0.25, 1e-6)


def test_nobody_costs_nothing() -> None:
    assert zcdp_measurement(GUMBEL, size=4).map(0) == (0.0, 0.0)
    assert approximate_measurement(LIMITED, size=4, delta=0.02).map(0) == (0.0, 0.0)


def test_several_persons_cost_a_chain_of_neighbours() -> None:
    assert zcdp_measurement(GUMBEL, size=4).map(3) == (9 * GUMBEL.loss.rho(), 0.0)
    epsilon, delta = approximate_measurement(LIMITED, size=4, delta=0.02).map(2)
    assert epsilon == 2 * LIMITED.loss.epsilon(0.02)
    assert delta >= 0.02 * (1 + math.exp(epsilon / 2))
    assert delta == pytest.approx(0.02 * (1 + math.exp(epsilon / 2)))


def test_scores_of_another_sensitivity_are_measured_by_it() -> None:
    mechanism = GumbelTopK(k=1, scale=10, sensitivity=5)
    measurement = zcdp_measurement(mechanism, size=4)
    assert measurement.map(5) == (mechanism.loss.rho(), 0.0)
    assert measurement.map(6) == (4 * mechanism.loss.rho(), 0.0)


@pytest.mark.parametrize("mechanism", [GUMBEL, LIMITED], ids=["gumbel", "limited-domain"])
@pytest.mark.parametrize("distance", [1, 2])
def test_the_exact_laws_keep_the_map(mechanism: GumbelTopK, distance: int) -> None:
    epsilon, delta = approximate_measurement(mechanism, size=3, delta=0.02).map(distance)
    for low in itertools.product(range(3), repeat=3):
        for moves in itertools.product(range(distance + 1), repeat=3):
            high = [count + move for count, move in zip(low, moves, strict=True)]
            one, other = (
                mechanism.distribution(Histogram.from_counts(counts)) for counts in (low, high)
            )
            for p, q in ((one, other), (other, one)):
                excess = sum(max(0.0, p[o] - math.exp(epsilon) * q.get(o, 0.0)) for o in p)
                assert excess <= delta


def test_the_default_is_not_drawn_from_counts_alone_and_its_picks_are() -> None:
    chosen = approximate_measurement(TestedOrWeighted(4, 1.0, 1e-6), size=4, delta=1e-6)
    with pytest.raises(dp.OpenDPException, match="counts alone do not tell how many items"):
        chosen([900, 800, 700, 600])
    tested = TestedTopK(4, 1.0, 1e-6)
    assert len(approximate_measurement(tested, size=4, delta=1e-6)([900, 800, 700, 600])) == 4
    rho, failures = zcdp_measurement(tested, size=4).map(1)
    assert rho > 0 < failures


def test_measurements_compose_in_opendp() -> None:
    both = dp.c.make_composition([zcdp_measurement(GUMBEL, size=4)] * 2)
    assert both.map(1) == (2 * GUMBEL.loss.rho(), 0.0)
    assert len(both([9, 8, 7, 6])) == 2


REFUSED = [
    (
        lambda: zcdp_measurement(LIMITED, size=4),
        "the loss of LimitedDomain is not zCDP; use approximate_measurement",
    ),
    (lambda: zcdp_measurement(GUMBEL, size=0), "size=0 must be a whole number, 1 or more"),
    (
        lambda: approximate_measurement(
            LimitedDomainLaplace(k=2, k_bar=5, epsilon_per_pick=1, delta=1e-8, max_items=3),
            size=4,
            delta=1e-6,
        ),
        "max_items=3 is no distance between vectors of size=4; use a mechanism without a cap",
    ),
    (
        lambda: zcdp_measurement(ClippedSums(2, 1.0, 1e-6, 1, 1, 1, domain="public"), size=4),
        "ClippedSums holds only where all that one person adds is scaled down to a total, "
        "together, which no distance between vectors of counts says; use another mechanism",
    ),
]


@pytest.mark.parametrize(("made", "message"), REFUSED, ids=[case[1] for case in REFUSED])
def test_what_has_no_measurement_is_refused(made, message: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        made()
    assert str(refused.value) == message


def test_a_vector_of_another_length_is_refused() -> None:
    with pytest.raises(dp.OpenDPException, match="a list of size=4; pass one for each"):
        zcdp_measurement(GUMBEL, size=4)([1, 2])


def test_groups_are_refused_where_no_bound_is_known() -> None:
    stable = zcdp_measurement(StableTopK(k_bar=3, rho=0.25, failure=1e-6), size=4)
    with pytest.raises(dp.OpenDPException, match="d_in=2 must be one person's"):
        stable.map(2)
