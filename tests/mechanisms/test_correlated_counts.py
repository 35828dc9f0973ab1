"""CorrelatedCounts: the draw against its law, a list with its counts, and wrong variants.

The list and its counts are enumerated together: for every answer o of the selection the counts are
a Gaussian step whose signal-to-noise ratio is known, so that delta(x) of the whole is
Σ_o P(o)·G(x − ln(P(o)/Q(o))), exactly. (Before rounding: what is published is a function of it.)
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from topsecret.accounting import absorbed_after, failure, gaussian, slack
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter, TooLarge
from topsecret.mechanisms import CorrelatedCounts, GumbelTopK, LimitedDomain, TestedTopK
from topsecret.mechanisms.correlated_counts import drawn
from topsecret.mechanisms.count_noise import CountNoise
from topsecret.noise.bits import ReplayableBits
from topsecret.verify import check_privacy, check_sampler

NAMES = ("a", "b", "c")
XS = np.array([0.0, 0.3, 0.7, 1.2, 1.8, 2.6, 4.0])
MU = Fraction(3, 2)


def histogram(counts, public):
    observed = {name: count for name, count in zip(NAMES, counts, strict=True) if count}
    return Histogram.of(observed, domain=NAMES) if public else Histogram.of(observed)


def gaussian_deltas(mu, shifted):
    """G_mu at every x, vectorised; mu = 0 is no release at all."""
    if mu == 0:
        return np.maximum(0.0, -np.expm1(shifted))
    return ndtr(mu / 2 - shifted / mu) - np.exp(shifted) * ndtr(-mu / 2 - shifted / mu)


def joint_deltas(p, q, ratio):
    """delta(x) of the answer with the counts of its items, from p to q."""
    total = np.zeros(len(XS))
    for answer, chance in p.items():
        if chance <= 0:
            continue
        if q.get(answer, 0.0) <= 0:
            total += chance
            continue
        items = [symbol for symbol in answer if isinstance(symbol, str)]
        mu = ratio(items, len(answer)) if items else 0.0
        total += chance * gaussian_deltas(mu, XS - math.log(chance / q[answer]))
    return total


@dataclass(frozen=True)
class Setting:
    """A selection, the counts behind it, and what both together claim."""

    mechanism: object
    public: bool = False
    max_items: int | None = None
    early_end: bool = False
    mu: Fraction = MU
    levels: tuple[int, ...] = (0, 1, 2)
    """The counts of the smaller of two neighbours, all combinations of them."""

    def counts(self, symbols):
        """The counts after so many symbols of the selection."""
        mu = self.chain[symbols] if self.early_end else self.mu
        return CorrelatedCounts(mu, self.max_items)

    @property
    def chain(self):
        return absorbed_after(self.mechanism.k, self.mechanism.epsilon_per_pick, self.mu)

    @property
    def loss(self):
        own = self.mechanism.loss
        if self.early_end:
            return gaussian(self.chain[0] ** 2) + slack(own.slack) + failure(own.failures)
        return own.then_gaussian(self.mu**2)


def right_ratio(setting, moved):
    """The true signal-to-noise ratio: h_i − λN moves by 1 − λ or −λ, N by 1."""

    def ratio(items, symbols):
        noise = setting.counts(symbols).noise(len(items))
        common = 0 if noise.common_scale is None else 1 / noise.common_scale**2
        squares = sum(((item in moved) - noise.weight) ** 2 for item in items)
        return math.sqrt(squares / noise.item_scale**2 + common)

    return ratio


def largest_excess(setting, ratio_of=right_ratio, claim=None, most_moved=None):
    """The most by which any pair of neighbours exceeds the claim, both directions."""
    loss = setting.loss if claim is None else claim
    claims = np.array([loss.delta(float(x)) for x in XS])
    laws = {
        counts: setting.mechanism.distribution(histogram(counts, setting.public))
        for counts in product(sorted({*setting.levels, *(c + 1 for c in setting.levels)}), repeat=3)
    }
    cap = most_moved or setting.max_items or 3
    excess = -1.0
    for counts in product(setting.levels, repeat=3):
        for more in product((0, 1), repeat=3):
            if not 0 < sum(more) <= cap:
                continue
            moved = {name for name, one in zip(NAMES, more, strict=True) if one}
            other = tuple(c + one for c, one in zip(counts, more, strict=True))
            ratio = ratio_of(setting, moved)
            p, q = laws[counts], laws[other]
            for first, second in ((p, q), (q, p)):
                excess = max(excess, float((joint_deltas(first, second, ratio) - claims).max()))
    return excess


GUMBEL = Setting(GumbelTopK(2, 2), public=True)
LIMITED = Setting(LimitedDomain(2, 3, 0.7, 0.001), levels=(0, 9, 14))
EARLY = Setting(
    LimitedDomain(3, 3, 0.5, 1e-4), early_end=True, mu=Fraction(1, 4), levels=(0, 19, 22)
)
TESTED = Setting(TestedTopK(2, 3.0, 0.6, k_bar=3), mu=Fraction(4), levels=(0, 3, 6))
ONE_ITEM = LimitedDomain(2, 3, 0.7, 0.01, max_items=1)
SETTINGS = {
    "gumbel": GUMBEL,
    "gumbel, cap 1": replace(GUMBEL, max_items=1),
    "gumbel, cap 2": Setting(GumbelTopK(3, 3), public=True, max_items=2),
    "limited domain": LIMITED,
    "limited domain, small counts": Setting(LimitedDomain(2, 2, 0.7, 0.05)),
    "limited domain, cap 1": Setting(ONE_ITEM, max_items=1, levels=(0, 5, 9)),
    "early end": EARLY,
    "early end, small counts": Setting(
        LimitedDomain(2, 2, 0.8, 0.1), early_end=True, mu=Fraction(1, 2)
    ),
    "tested": TESTED,
    "tested, small counts": replace(TESTED, mu=Fraction(1), levels=(0, 1, 2)),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_list_and_its_counts_keep_to_the_claim_together(name):
    assert largest_excess(SETTINGS[name]) <= 1e-12


def independent_noise(setting, moved):
    """As much noise on each count, but all of it independent."""

    def ratio(items, symbols):
        return math.sqrt(len(moved & set(items))) / setting.counts(symbols).noise(len(items)).sigma

    return ratio


def variance_for_one_item(setting, moved):
    def ratio(items, symbols):
        noise = setting.counts(symbols).noise(1)
        squares = sum(((item in moved) - noise.weight) ** 2 for item in items)
        return math.sqrt(squares / noise.item_scale**2 + 1 / noise.common_scale**2)

    return ratio


def fixed_number_of_persons(setting, moved):
    """N published as if it were public: then W is known, and Z_i alone protects."""

    def ratio(items, symbols):
        return math.sqrt(len(moved & set(items))) / float(
            setting.counts(symbols).noise(len(items)).item_scale
        )

    return ratio


def one_pick_too_many(setting, moved):
    """An early end that hands on one pick more than was left."""
    return lambda items, symbols: right_ratio(setting, moved)(items, symbols - 1)


@pytest.mark.parametrize(
    ("setting", "wrong", "at_least"),
    [
        (GUMBEL, independent_noise, 0.02),
        (LIMITED, independent_noise, 0.05),
        (GUMBEL, variance_for_one_item, 0.05),
        (GUMBEL, fixed_number_of_persons, 0.1),
        (LIMITED, fixed_number_of_persons, 0.2),
        (EARLY, one_pick_too_many, 0.005),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_wrong_noise_is_rejected(setting, wrong, at_least):
    assert largest_excess(setting, wrong) > at_least


def test_a_cap_that_is_not_enforced_is_rejected():
    capped = replace(GUMBEL, max_items=1)
    assert largest_excess(capped, most_moved=3) > 0.02


@pytest.mark.parametrize("setting", [GUMBEL, LIMITED, TESTED], ids=["gumbel", "limited", "tested"])
def test_counts_that_are_not_charged_are_rejected(setting):
    assert largest_excess(setting, claim=setting.mechanism.loss) > 0.1


def test_add_remove_noise_is_rejected_under_replace():
    """Counts move both ways and N stays: the common noise protects nothing."""
    noise = CorrelatedCounts(MU).noise(2)
    given = math.sqrt(2) / float(noise.item_scale)
    assert given > float(MU) * 1.3
    right = CorrelatedCounts(MU, adjacency="replace").noise(2)
    assert right.common_scale is None
    assert 2 / right.item_scale**2 <= MU**2


@pytest.mark.parametrize("case", CorrelatedCounts.verification_cases(), ids=str)
def test_no_neighbour_breaks_the_claim(case):
    check_privacy(case, items=2, max_count=3, tall=0).require()


@pytest.mark.parametrize("case", CorrelatedCounts.verification_cases()[1:], ids=str)
def test_the_sampler_draws_the_law(case):
    """A correct sampler is rejected with probability at most 10⁻⁹; the bits are fixed here."""
    h = Histogram.of({"a": 4, "b": 3}, domain=("a", "b"))
    bits = ReplayableBits(b"correlated counts")
    check_sampler(case, h, 1500, alarm_rate=1e-9, bits=bits).require()


@dataclass(frozen=True)
class Independent(CorrelatedCounts):
    """The same deviation of each count without the common part."""

    def noise(self, released):
        right = super().noise(released)
        return CountNoise(released, Fraction(0), Fraction(right.sigma), None)


def test_verification_rejects_independent_noise():
    wrong = Independent(2).of(("a", "b"), (1, 4))
    assert check_privacy(wrong, items=2, max_count=3, tall=0).broken is not None


def test_the_draw_has_the_moments_of_its_law():
    """2,000 draws: deviations within 4 standard errors of the stated ones."""
    noise = CorrelatedCounts(Fraction(1, 5)).noise(3)
    bits = ReplayableBits(b"moments")
    sample = np.array([(w, *each) for w, each in (drawn(noise, bits) for _ in range(2000))])
    covariance = np.cov(sample.T)
    a, b, weight = (float(v) for v in (noise.item_scale, noise.common_scale, noise.weight))
    expected = np.full((4, 4), weight**2 * b**2)
    expected[0, :] = expected[:, 0] = weight * b**2
    expected += np.diag([0, a * a, a * a, a * a])
    expected[0, 0] = b**2
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(covariance - expected) < 4 * scale * math.sqrt(2 / 2000)).all()
    assert noise.sigma == pytest.approx((math.sqrt(3) + 1) / 2 * 5)


def test_the_noise_keeps_to_its_price_exactly():
    """S/a + 1/b ≤ mu² in exact fractions, for many m and caps."""
    for m, cap in product((1, 2, 3, 7, 50, 100), (None, 1, 2, 5, 25, 60)):
        for mu in (Fraction(1, 7), Fraction(0.3), Fraction(5)):
            noise = CorrelatedCounts(mu, cap).noise(m)
            touched = m if cap is None else min(m, cap)
            weight = noise.weight
            signal = touched - 2 * touched * weight + m * weight**2
            common = 0 if noise.common_scale is None else 1 / noise.common_scale**2
            spent = signal / noise.item_scale**2 + common
            assert mu**2 * (1 - Fraction(1, 10**9)) < spent <= mu**2
            assert 0 <= weight <= Fraction(1, 2)


def test_known_deviations():
    assert CorrelatedCounts(1).noise(100).sigma == pytest.approx(5.5)
    assert CorrelatedCounts(1, max_items=25).noise(100).sigma == pytest.approx(4.558, abs=1e-3)
    assert CorrelatedCounts(1, max_items=1).noise(100).sigma == pytest.approx(1)


def test_nothing_released_is_nothing_drawn():
    empty = CorrelatedCounts(1).release(Histogram.of({"a": 5}), (), persons=9)
    assert (empty.counts, empty.persons, empty.noise) == ((), None, None)


def test_huge_counts_stay_exact():
    h = Histogram.of({"a": 10**30, "b": 1})
    noisy = CorrelatedCounts(100).release(h, ("a", "b"), persons=10**31)
    assert abs(noisy.counts[0] - 10**30) < 5
    assert abs(noisy.persons - 10**31) < 5


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"mu": 0}, "mu=0 must be above 0"),
        ({"mu": math.nan}, "mu=nan must be finite"),
        ({"mu": 1, "max_items": 0}, "max_items=0 must be at least 1"),
        ({"mu": 1, "adjacency": "swap"}, "adjacency='swap' must be"),
    ],
)
def test_wrong_parameters(parameters, text):
    with pytest.raises(InvalidParameter, match=text):
        CorrelatedCounts(**parameters)


def test_wrong_releases():
    h = Histogram.of({"a": 5, "b": 2}, domain=("a", "b"))
    with pytest.raises(InvalidParameter, match="must not name one twice"):
        CorrelatedCounts(1).release(h, ("a", "a"))
    with pytest.raises(InvalidParameter, match="persons cannot be published under replace"):
        CorrelatedCounts(1, adjacency="replace").release(h, ("a",), persons=5)
    with pytest.raises(TooLarge, match="take a narrower window"):
        CorrelatedCounts(1).of(("a", "b"), (0, 1000)).probabilities(h)
