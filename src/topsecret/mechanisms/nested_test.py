"""One test of several nested lists: Gaussian noise with a common part, the longest that passes.

List j has the least strength A_j ≥ 1, and A_1 ≤ A_2 ≤ … since shorter lists are parts of longer
ones. With independent standard normals G, Z_1, …, Z_J and N_j = σ·(G/√2 + √(s_j² − ½)·Z_j) the
answer is the smallest j with A_j − 1 + N_j > σ·s_j·z, or none.

Guarantee: if the moves of all A_j lie in one interval of length 1 that contains 0, the answer is
post-processing of one Gaussian step of μ = √κ/σ; a list with A_j = 1 passes with probability
Φ(−z). (Strengths are in units of what one person moves, so they may be fractions.) The
proof is in docs/proofs/tested-top-k.md.

>>> [float(round(spread_cost(lists), 3)) for lists in (1, 2, 3, 4)]
[1.0, 1.21, 1.417, 1.525]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations

from flint import acb, arb, ctx

from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import GAUSSIAN
from topsecret.noise.reals import Noisy, Rational, bernoulli, is_less

GROWTH = Fraction(6, 5)
"""s_j = 1.2^(j − 1): shorter lists, which lead by more, are tested with more noise."""
COMMON = Fraction(1, 2)
"""The variance of the common part of the noise."""
_ZERO = Rational(Fraction(0))


@lru_cache(maxsize=16)
def spreads(lists: int) -> tuple[Fraction, ...]:
    """s_1, …, s_J."""
    return tuple(GROWTH**j for j in range(lists))


@lru_cache(maxsize=16)
def own_variances(lists: int) -> tuple[Fraction, ...]:
    """s_j² − ½: what the noise of list j has beside the common part; 1 for a single list."""
    return tuple(s * s - COMMON for s in spreads(lists)) if lists > 1 else (Fraction(1),)


@lru_cache(maxsize=16)
def spread_cost(lists: int) -> Fraction:
    """κ: the largest vᵀS⁻¹v over v ∈ {0, 1}^J, S = ½·11ᵀ + diag(s_j² − ½).

    With w_j = 1/(s_j² − ½), X = Σ_{v_j=1} w_j and W = Σw_j it is X − X²/(1/½ + W) (Sherman and
    Morrison). A convex function of v: its maximum over [0, 1]^J is at a corner.
    """
    if lists == 1:
        return Fraction(1)
    weights = [1 / variance for variance in own_variances(lists)]
    whole = 1 / COMMON + sum(weights)
    sums = [
        sum(chosen, Fraction(0))
        for size in range(1, lists + 1)
        for chosen in combinations(weights, size)
    ]
    return max(part - part * part / whole for part in sums)


@dataclass(frozen=True, slots=True)
class NestedTest:
    """The test of ``lists`` nested lists at σ and z, both public."""

    lists: int
    sigma: Fraction
    quantile: Fraction

    def __post_init__(self) -> None:
        assert self.lists >= 1

    def levels(self, strengths: Sequence[int | Fraction]) -> tuple[Fraction, ...]:
        """What N_j/σ must exceed for list j to pass."""
        places = zip(spreads(self.lists), strengths, strict=True)
        return tuple(self._level(spread, strength) for spread, strength in places)

    def _level(self, spread: Fraction, strength: int | Fraction) -> Fraction:
        return spread * self.quantile - (strength - 1) / self.sigma

    def draw(self, strengths: Sequence[int | Fraction], bits: BitSource) -> int | None:
        """The place of the longest list that passes, from 0; None if none does."""
        if self.lists == 1:
            return 0 if bernoulli(Above(self.levels(strengths)[0]), bits) else None
        common = Noisy(_ZERO, GAUSSIAN, Fraction(1), bits)
        owns = own_variances(self.lists)
        tests = zip(spreads(self.lists), strengths, owns, strict=True)
        for place, (spread, strength, own) in enumerate(tests):
            noise = Noisy(_ZERO, GAUSSIAN, Fraction(1), bits)
            if is_less(Rational(self._level(spread, strength)), _Mixed(common, noise, own)):
                return place
        return None

    def law(self, strengths: Sequence[int | Fraction]) -> tuple[arb, ...]:
        """The probability of each place, and last that of none, at the current precision."""
        return _law(self.levels(strengths), ctx.prec)


@dataclass(frozen=True, slots=True)
class Above:
    """P[Z > level] of a standard normal Z."""

    level: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around the chance."""
        with precision(bits + 64):
            return GAUSSIAN.tail(ball(self.level))


@dataclass(frozen=True, slots=True)
class _Mixed:
    """N_j/σ = G/√2 + √own·Z_j."""

    common: Noisy
    noise: Noisy
    own: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around the noise, from this many bits of both normals."""
        with precision(bits + 32):
            common = _root(COMMON, bits + 32) * self.common.ball(bits)
            return common + _root(self.own, bits + 32) * self.noise.ball(bits)


@lru_cache(maxsize=64)
def _root(value: Fraction, bits: int) -> arb:
    with precision(bits):
        return ball(value).sqrt()


@lru_cache(maxsize=4096)
def _law(levels: tuple[Fraction, ...], bits: int) -> tuple[arb, ...]:
    """Given G the lists pass independently: one integral over G for each place."""
    with precision(bits + 32):
        if len(levels) == 1:
            passes = GAUSSIAN.tail(ball(levels[0]))
            return passes, 1 - passes
        # Φ(−reach) < 2^(−bits − 16): the integrand is at most the density of G.
        reach = arb(2 * (bits + 16)).sqrt().ceil()
        missing = GAUSSIAN.tail(reach)
        root = ball(COMMON).sqrt()
        owns = [ball(own).sqrt() for own in own_variances(len(levels))]
        fails = [(ball(level), own) for level, own in zip(levels, owns, strict=True)]

        def density(common: acb, _: bool, place: int) -> acb:
            value = (-common * common / 2).exp() / (2 * arb.pi()).sqrt()
            for before, (level, own) in enumerate(fails[: place + 1]):
                above = (level - common * root) / own / arb(2).sqrt()
                value *= (above if before == place else -above).erfc() / 2
            return value

        found = []
        for place in range(len(levels)):
            whole = acb.integral(partial(density, place=place), acb(-reach), acb(reach)).real
            found.append(whole + missing * arb(1, 1))
        return *found, 1 - sum(found, arb(0))
