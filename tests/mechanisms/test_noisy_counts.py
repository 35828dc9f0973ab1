"""NoisyCounts: noise for what one person can change, integer and exact, at a fixed cost."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.accounting import gaussian, pure, zcdp
from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired, InvalidParameter, TooLarge
from topsecret.mechanisms import NoisyCounts
from topsecret.noise.lattice import DiscreteGaussian, DiscreteLaplace
from topsecret.verify import check_privacy, check_sampler

WINDOW = (0, 7)


@pytest.mark.parametrize(
    ("max_items", "adjacency", "released", "moved"),
    [
        (None, "add-remove", 5, 5),
        (None, "replace", 5, 5),
        (2, "add-remove", 5, 2),
        (2, "replace", 5, 4),
        (2, "replace", 3, 3),
        (9, "add-remove", 5, 5),
    ],
)
def test_the_noise_fits_what_one_person_can_change(max_items, adjacency, released, moved):
    laplace = NoisyCounts(epsilon=0.5, max_items=max_items, adjacency=adjacency)
    assert laplace.moved(released) == moved
    assert laplace.noise(released) == DiscreteLaplace(Fraction(2 * moved))
    normal = NoisyCounts(rho=0.25, max_items=max_items, adjacency=adjacency)
    assert normal.noise(released) == DiscreteGaussian(Fraction(2 * moved))


def test_the_cost_is_fixed():
    assert NoisyCounts(epsilon=0.3).loss == pure(0.3)
    assert NoisyCounts(rho=0.3).loss == zcdp(0.3)
    assert NoisyCounts(rho=0.3).loss != gaussian(0.6)


@pytest.mark.parametrize("case", NoisyCounts.verification_cases(), ids=str)
def test_no_neighbour_breaks_the_claim(case):
    check_privacy(case, items=3, max_count=3).require()


@pytest.mark.parametrize("case", NoisyCounts.verification_cases(), ids=str)
def test_the_sampler_draws_the_law(case):
    """A correct sampler is rejected with probability at most 10⁻⁹."""
    h = Histogram.of({"a": 6, "b": 4}, domain=("a", "b", "c"))
    check_sampler(case, h, 3000, alarm_rate=1e-9).require()


@dataclass(frozen=True)
class HalvedUnderReplace(NoisyCounts):
    def moved(self, released):
        return min(released, self.max_items)


@dataclass(frozen=True)
class OnePersonOneItem(NoisyCounts):
    def moved(self, released):
        return 1


@dataclass(frozen=True)
class ChargedAsContinuous(NoisyCounts):
    """The discrete Gaussian filed under the profile of the continuous one."""

    @property
    def loss(self):
        return gaussian(2 * Fraction(self.rho))


@pytest.mark.parametrize(
    "defect",
    [
        HalvedUnderReplace(epsilon=2.0, max_items=1, adjacency="replace"),
        OnePersonOneItem(epsilon=2.0),
        OnePersonOneItem(epsilon=2.0, max_items=2),
        OnePersonOneItem(rho=2.0),
        ChargedAsContinuous(rho=0.5, max_items=1),
    ],
    ids=str,
)
def test_too_little_noise_breaks_the_claim(defect):
    assert check_privacy(defect.of(("a", "b"), WINDOW), items=2, max_count=3).broken is not None


@dataclass(frozen=True)
class DividedWrongly(NoisyCounts):
    def noise(self, released):
        return DiscreteLaplace(1 / super().noise(released).scale)


def test_a_wrong_draw_is_rejected():
    """Noise of scale 3/2 drawn where the law says 2/3: the lists' law comes from the right one."""
    h = Histogram.of({"a": 3}, domain=("a", "b"))
    right = NoisyCounts(epsilon=1.5).of(("a",), WINDOW)
    wrong = DividedWrongly(epsilon=1.5).of(("a",), WINDOW)

    class Mixed:
        select, probabilities = wrong.select, right.probabilities

    assert not check_sampler(Mixed(), h, 4000, alarm_rate=1e-9).passed
    assert check_sampler(right, h, 4000, alarm_rate=1e-9).passed


def test_the_window_carries_the_tails():
    h = Histogram.of({"a": 900}, domain=("a", "b"))
    law = NoisyCounts(epsilon=1.0).of(("a", "b"), WINDOW).probabilities(h)
    assert sum(law.values(), arb(0)).contains(1)
    assert law[7, 0] > 0.5
    single = NoisyCounts(epsilon=1.0).of(("a",), (3, 3)).distribution(h)
    assert single == {(3,): 1.0}


def test_counts_come_from_every_kind_of_histogram():
    quiet = NoisyCounts(epsilon=1000.0)
    assert quiet.release(Histogram.of({"a": 5, "b": 2**70}), ("b", "a")) == (2**70, 5)
    assert quiet.release(Histogram.of({"a": 5}, domain=("a", "b")), ("a", "b")) == (5, 0)
    assert quiet.release(Histogram.from_counts([4, 0, 2]), (2, 0)) == (2, 4)
    assert quiet.release(Histogram.leading([("x", 9), ("y", 3)]), ("y", "x")) == (3, 9)


@pytest.mark.parametrize("items", [("nobody",), (10**9,), (-1,)])
def test_an_item_that_nobody_has_counts_nothing(items):
    quiet = NoisyCounts(epsilon=1000.0)
    for h in (
        Histogram.of({"a": 5}),
        Histogram.of({}, domain=("a",)),
        Histogram.from_counts([4, 2]),
        Histogram.leading([("x", 9)]),
    ):
        assert quiet.release(h, items) == (0,)


def test_nothing_released_needs_no_noise():
    assert NoisyCounts(rho=1.0).release(Histogram.of({"a": 5}), ()) == ()


def test_the_half_width_is_public_and_covers():
    """2000 intervals of 95%: at least 1800 hold, or the alarm is wrong by less than 10⁻¹⁸."""
    counts = NoisyCounts(epsilon=0.5, max_items=1)
    width = counts.half_width(released=4)
    assert width == 6
    h = Histogram.of(dict.fromkeys("abcd", 50))
    errors = Counter(
        abs(noisy - 50) <= width for _ in range(500) for noisy in counts.release(h, tuple("abcd"))
    )
    assert errors[True] >= 1800
    assert counts.half_width(4, confidence=0.5) < width


@settings(max_examples=30)
@given(
    st.dictionaries(st.text(max_size=2), st.integers(0, 2**66), max_size=6),
    st.sampled_from([{"epsilon": 0.3}, {"rho": 0.3}, {"epsilon": 1e-6}, {"rho": 50.0}]),
)
def test_integers_for_all_items(counts, budget):
    noisy = NoisyCounts(**budget).release(Histogram.of(counts), tuple(counts))
    assert len(noisy) == len(counts)
    assert all(type(count) is int for count in noisy)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {},
            "pass exactly one of epsilon and rho; neither was given: epsilon for discrete "
            "Laplace noise, rho for discrete Gaussian noise",
        ),
        (
            {"epsilon": 1.0, "rho": 1.0},
            "pass exactly one of epsilon and rho; both were given: epsilon for discrete "
            "Laplace noise, rho for discrete Gaussian noise",
        ),
        ({"epsilon": 0}, "epsilon=0 must be above 0; raise epsilon"),
        ({"rho": -1}, "rho=-1 must be above 0; raise rho"),
        ({"rho": math.nan}, "rho=nan must be finite"),
        ({"rho": 1, "max_items": 0}, "max_items=0 must be at least 1; raise max_items"),
        ({"rho": 1, "adjacency": "x"}, "adjacency='x' must be 'add-remove' or 'replace'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(InvalidParameter) as caught:
        NoisyCounts(**parameters)
    assert str(caught.value) == message


def test_bad_requests():
    counts, h = NoisyCounts(epsilon=1.0), Histogram.of({"a": 5})
    with pytest.raises(InvalidParameter, match="items must not name one twice"):
        counts.release(h, ("a", "a"))
    with pytest.raises(InvalidParameter, match="real scores have no people to count"):
        counts.release(Histogram.from_counts([0.5, 1.5]), (0,))
    with pytest.raises(InvalidParameter, match="released=0 must be at least 1"):
        counts.half_width(0)
    with pytest.raises(InvalidParameter, match="confidence=1 must lie between 0 and 1"):
        counts.half_width(1, confidence=1)
    with pytest.raises(InvalidParameter, match=r"window=\(3, 1\) must not be empty; swap"):
        counts.of(("a",), (3, 1))
    with pytest.raises(DomainRequired):
        counts.of(("a",), WINDOW).select(h)
    with pytest.raises(TooLarge, match="take a narrower window"):
        counts.of(tuple("abcd"), (0, 99)).distribution(Histogram.of({}, domain="abcd"))
