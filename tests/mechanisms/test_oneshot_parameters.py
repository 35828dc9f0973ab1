"""OneshotExponential and OneshotLaplace: parameters, properties, ordinary answers on odd inputs."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mechanisms.oneshot import COUNTS, KINDS, TIED, histogram

from topsecret.accounting import approximate, pure
from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.exact.rounding import precision
from topsecret.mechanisms import OneshotExponential, OneshotLaplace
from topsecret.mechanisms.order_laws import laplace, score_set_law

# Parameters.


def test_scales_and_losses():
    assert OneshotExponential(k=3, epsilon=0.5).scale == 6
    assert OneshotExponential(k=3, epsilon=0.5, adjacency="replace").scale == 12
    assert OneshotExponential(k=3, epsilon=0.5).loss == pure(0.5)
    assert OneshotExponential(k=3, epsilon=0.5, sensitivity=0).loss.epsilon(0) == 0
    assert OneshotLaplace(k=3, epsilon=0.5).scale(100) == 6
    assert OneshotLaplace(k=99, epsilon=0.5, adjacency="replace").scale(100) == 4
    assert OneshotLaplace(k=5, epsilon=0.5).scale(5) == 0
    assert OneshotLaplace(k=3, epsilon=0.5).loss == pure(0.5)
    assert OneshotLaplace(k=3, epsilon=0.1, delta=0.01).loss == approximate(0.1, 0.01)
    assert OneshotLaplace(k=3, epsilon=0.1, delta=0.01, sensitivity=0).loss.delta(0) == 0


def test_the_approximate_scale_is_used_where_it_is_smaller():
    """8·√(k·ln(m/δ))/ε, rounded up, beats k/ε from k > 64·ln(m/δ) on."""
    mechanism = OneshotLaplace(k=10**4, epsilon=0.125, delta=2**-20)
    scale = mechanism.scale(10**6)
    expected = 8 * math.sqrt(10**4 * math.log(10**6 * 2**20)) / 0.125
    assert float(scale) == pytest.approx(expected, rel=1e-14)
    with precision(256):
        exactly = 64 * (10**4 * arb(10**6 * 2**20).log()).sqrt()
        assert exactly <= arb(scale.numerator) / scale.denominator
    assert scale < OneshotLaplace(k=10**4, epsilon=0.125).scale(10**6) == 80_000
    few = OneshotLaplace(k=100, epsilon=0.125, delta=2**-20)
    assert few.scale(10**6) == OneshotLaplace(k=100, epsilon=0.125).scale(10**6)


def test_the_float_0_2_is_treated_as_the_decimal():
    """It lies above 1/5, for which the theorem is proved: the scale is that of 1/5."""
    floats = OneshotLaplace(k=10**4, epsilon=0.2, delta=0.05).scale(10**5)
    decimals = OneshotLaplace(10**4, Fraction(1, 5), delta=Fraction(1, 20)).scale(10**5)
    assert floats == decimals


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k=0 must be at least 1; raise k"),
        ({"epsilon": 0}, "epsilon=0 must be above 0; raise epsilon"),
        ({"epsilon": math.inf}, "epsilon=inf must be finite"),
        ({"sensitivity": -2}, "sensitivity=-2 must be at least 0; raise sensitivity"),
        ({"adjacency": "both"}, "adjacency='both' must be 'add-remove' or 'replace'"),
    ],
)
def test_bad_parameters(kind, changes, message):
    with pytest.raises(InvalidParameter) as caught:
        kind(**{"k": 1, "epsilon": 1.0, **changes})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (
            0.21,
            0.01,
            "epsilon=0.21 must be at most 0.2 when delta is given; "
            "lower epsilon, or leave delta out for pure privacy at any epsilon",
        ),
        (0.1, 0.06, "delta=0.06 must be at most 0.05; lower delta"),
        (0.1, 0, "delta=0 must lie between 0 and 1, such as 1e-6"),
    ],
)
def test_the_theorems_preconditions(epsilon, delta, message):
    with pytest.raises(InvalidParameter) as caught:
        OneshotLaplace(k=1, epsilon=epsilon, delta=delta)
    assert str(caught.value) == message


def test_the_theorem_needs_two_candidates():
    with pytest.raises(InvalidParameter, match="domain has 1 item, and delta needs at least 2"):
        OneshotLaplace(k=1, epsilon=0.1, delta=0.01).select(histogram({"a": 3}))
    assert OneshotLaplace(k=1, epsilon=0.1).select(histogram({"a": 3})).items == ("a",)


@pytest.mark.parametrize("kind", KINDS)
def test_the_domain_must_be_public_and_large_enough(kind):
    with pytest.raises(DomainRequired, match=f"{kind.__name__} names any item"):
        kind(1, 1.0).select(Histogram.of({"a": 1}))
    with pytest.raises(InvalidParameter, match="k=5 must be at most the 4 items"):
        kind(5, 1.0).distribution(histogram())


# Properties.


@settings(max_examples=50)
@given(
    COUNTS,
    st.integers(1, 4),
    st.sampled_from([1e-9, 2 / 3, 1e9]),
    st.booleans(),
    st.sampled_from(KINDS),
)
def test_no_item_comes_twice(counts, k, epsilon, smallest, kind):
    k = min(k, len(counts))
    answer = kind(k, epsilon, smallest=smallest).select(Histogram.from_counts(counts))
    assert len(set(answer.items)) == k
    assert answer.complete
    assert set(answer.items) <= set(range(len(counts)))


@settings(max_examples=25)
@given(COUNTS, st.permutations("wxyz"), st.integers(-5, 2**70), st.sampled_from(KINDS))
def test_the_law_follows_names_and_ignores_shifts(counts, names, shift, kind):
    names = names[: len(counts)]
    moved = {name: count + shift for name, count in zip(names, counts, strict=True)}
    mechanism = kind(min(2, len(counts)), 2 / 3)
    renamed = mechanism.probabilities(histogram(moved))
    order = tuple if mechanism.ordered else lambda chosen: tuple(sorted(chosen))
    for outcome, chance in mechanism.probabilities(Histogram.from_counts(counts)).items():
        assert renamed[order(names[i] for i in outcome)].overlaps(chance)


@pytest.mark.parametrize("kind", KINDS)
def test_smallest_is_the_mirror_image(kind):
    mirror = {item: -count for item, count in TIED.items()}
    lowest = kind(2, 3.0, smallest=True).distribution(histogram())
    assert lowest == kind(2, 3.0).distribution(histogram(mirror))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [{}, {"a": 0, "b": 0}, {"a": 5, "b": 5}, {"c": 2**70}])
@pytest.mark.parametrize("sensitivity", [0, 1])
def test_ordinary_answers_on_all_inputs(kind, counts, sensitivity):
    h = Histogram.of(counts, domain=("a", "b", "c"))
    for k in (2, 3):
        mechanism = kind(k, 0.5, sensitivity=sensitivity)
        assert len(mechanism.select(h).items) == k
        assert math.fsum(mechanism.distribution(h).values()) == pytest.approx(1)


def test_laws_are_as_sharp_as_they_are_asked_to_be():
    scores = [("a", Fraction(4)), ("b", Fraction(0)), ("c", Fraction(1))]
    for bits in (128, 1024):
        with precision(bits):
            law = score_set_law(laplace, scores, Fraction(1, 9), 2)
        assert all(chance.rel_accuracy_bits() >= bits for chance in law.values())
