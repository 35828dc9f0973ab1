"""Absorption: picks that are followed by Gaussians cost one slightly larger Gaussian.

For epsilon ≤ 1 and mu ≥ epsilon/2 an epsilon-bounded-range step in front of a Gaussian step mu is
dominated by one Gaussian step

    mu' = mu + (1 + epsilon²/20)·epsilon²/(8·mu)

whatever comes later (docs/proofs/absorption.md). So a list of picks and the counts behind it have
a cost in closed form, where the recursion of ``profile`` needs a pass over a grid for every pick.

>>> runs = ((50, Fraction(1, 20)),)
>>> mu_squared = absorbed(runs, Fraction(1, 200))
>>> float(sum(n * e * e / 4 for n, e in runs) + Fraction(1, 200)) < mu_squared < 0.0366
True

**Only Gaussians after the picks absorb them.** A Gaussian before the picks, or of another release
whose place in time is not known, does not (the proof has an instance). Without any Gaussian behind
them, picks are charged as if there were one of the smallest size that serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from flint import arb

from topsecret.accounting.classical import Run
from topsecret.accounting.profile import gaussian_delta
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, exact, precision, root_up, up

LARGEST_ABSORBED = 1
"""The largest epsilon of a step that the lemma covers."""

_BITS = 96


def absorbed(runs: Iterable[Run], mu_squared: Number = 0) -> Fraction | None:
    """The mu² of one Gaussian that dominates the picks followed by Gaussians of ``mu_squared``.

    ``runs`` are in the order of time. Rounded up at every step; None where a pick is larger than
    the lemma allows.

    Guarantee: if the picks are chosen adaptively, with number and epsilons fixed beforehand, and
    continuous Gaussian steps of total ``mu_squared`` follow, then the whole costs at most
    ``gaussian(absorbed(runs, mu_squared))``, before and after any other releases.
    """
    steps = [(n, epsilon) for n, epsilon in runs if n and epsilon]
    after = exact(mu_squared, "mu_squared")
    if after < 0:
        raise InvalidParameter(f"mu_squared={mu_squared} must not be negative")
    if not steps:
        return after
    if any(epsilon > LARGEST_ABSORBED for _, epsilon in steps):
        return None
    scale = _scale(max(epsilon for _, epsilon in steps))
    mu = _scaled_up(root_up(after), scale)
    for n, epsilon in reversed(steps):
        least, gain = _gain(epsilon, scale)
        mu = max(mu, least)  # once: mu grows
        for _ in range(n):
            mu -= -gain // mu
    return Fraction(mu, 1 << scale) ** 2


def absorbed_after(count: int, epsilon: Number, mu: Number) -> tuple[Fraction, ...]:
    """The mu that is left for what follows after 0, 1, ..., ``count`` picks of ``epsilon``.

    The last is ``mu`` itself (at least epsilon/2 where a pick precedes it), each one before it
    absorbs one pick more. A list that ends early, after j symbols, may spend the j-th on what
    follows: the whole then costs the first, whenever it ends (docs/proofs/absorption.md, section
    3). What a list spends in this way must not be given back by a ledger.
    """
    price = exact(epsilon, "epsilon")
    if not 0 < price <= LARGEST_ABSORBED:
        raise InvalidParameter(f"epsilon={epsilon} must be above 0 and at most {LARGEST_ABSORBED}")
    scale = _scale(price)
    least, gain = _gain(price, scale)
    found = [max(least, _scaled_up(exact(mu, "mu"), scale))]
    for _ in range(count):
        found.append(found[-1] - (-gain // found[-1]))
    return tuple(Fraction(value, 1 << scale) for value in reversed(found))


def calibrate_absorbed(
    runs_of: Callable[[Fraction], Iterable[Run]], mu_squared: Number, total: Number
) -> Fraction:
    """The largest price, or nearly, at which ``absorbed(runs_of(price), mu_squared) <= total``.

    ``runs_of`` must give epsilons that grow in proportion to the price. 0 where nothing is left.

    >>> price = calibrate_absorbed(lambda e: ((100, e),), mu_squared=0.004, total=0.04)
    >>> 0.0377 < price < 0.0380 and absorbed(((100, price),), 0.004) <= Fraction(0.04)
    True
    """
    after, limit = exact(mu_squared, "mu_squared"), exact(total, "total")
    unit = [(n, epsilon) for n, epsilon in runs_of(Fraction(1)) if n and epsilon]
    if limit <= after or not unit:
        return Fraction(0)
    most = LARGEST_ABSORBED / max(epsilon for _, epsilon in unit)

    price = min(float(most), about_absorbed(unit, float(after), float(limit)))
    for _ in range(60):  # floats search; what is returned was checked exactly
        found = absorbed(runs_of(Fraction(price)), after)
        if found is not None and found <= limit:
            return Fraction(price)
        price *= 1 - 1e-9
    return Fraction(0)


def about_absorbed(unit: Iterable[Run], after: float, limit: float) -> float:
    """About the largest price, a little below it: ``absorbed`` in floats, by secants.

    Also where it leaves the lemma's range: a start for searches.
    """
    steps = [(n, float(epsilon)) for n, epsilon in unit if n and epsilon][::-1]
    weight = sum(n * epsilon**2 for n, epsilon in steps) / 4
    # mu² grows by a little more than weight·price²: this start is too much, by a percent or so.
    price, before, power = math.sqrt((limit - after) / weight), (math.inf, 0.0), 2.0
    for _ in range(20):
        mu = math.sqrt(after)
        for n, each in steps:
            square = (price * each) ** 2
            gain, mu = (1 + square / 20) * square / 8, max(mu, price * each / 2)
            for _ in range(n):
                mu += gain / mu
        # The excess over ``after`` is nearly a power of the price, a little above the second.
        here = math.log(price), math.log(mu * mu - after)
        if 1e-9 < abs(here[0] - before[0]) < 0.1:
            power = min(3.0, max(1.0, (here[1] - before[1]) / (here[0] - before[0])))
        before = here
        step = (math.log(limit - after) - here[1]) / power
        price = math.exp(here[0] + step)
        if abs(step) < 1e-11:
            break
    return price * (1 - 1e-10)


def delta_after_pick(epsilon: Number, mu_squared: Number, x: Number, cells: int = 64) -> float:
    """delta(x) of one pick in front of Gaussians of ``mu_squared``, rounded up, any epsilon.

    The supremum of the recursion itself, by chords over ``cells`` parts of the pick: sharper than
    absorption for a pick that is large beside mu, such as one that chooses among branches.

    >>> larger = absorbed(((1, Fraction(1, 10)),), 0.04)
    >>> delta_after_pick(0.1, 0.04, 1) < up(gaussian_delta(larger, Fraction(1)))
    True
    """
    pick, after, place = exact(epsilon, "epsilon"), exact(mu_squared), exact(x, "x")
    if pick < 0 or after < 0:
        raise InvalidParameter("epsilon and mu_squared must not be negative")
    with precision(160):
        if pick == 0:
            return up(gaussian_delta(after, place))
        h = pick / cells
        near = [gaussian_delta(after, place - c * h) for c in range(cells + 1)]
        far = [gaussian_delta(after, place - c * h + pick) for c in range(cells + 1)]
        width, growth = ball(h).expm1(), ball(pick).exp()
        worst = arb(0)
        for c in range(cells):
            ends = near[c + 1], near[c], far[c + 1], far[c]
            worst = worst.max(_cell_supremum(*ends, ball(h * (c + 1)).exp(), width, growth))
        return min(1.0, up(worst))


def _cell_supremum(
    near: arb, near_end: arb, far: arb, far_end: arb, top: arb, width: arb, growth: arb
) -> arb:
    """The largest value over one cell, chords in place of profiles (docs/proofs/accounting.md, 2).

    There (growth − 1)·V = const − A·s − B·top/s, which is concave for A, B ≥ 0, so at most
    const − 2·√(A·B·top) everywhere; where the slope has one sign, its value at an end.
    """
    near_drop, far_drop = near - near_end, far - far_end
    a = near - far + (near_drop - far_drop) / width
    b = (growth * near_drop - far_drop) / width
    constant = growth * (near + near_drop / width) - (far + far_drop / width)
    constant += top * (near_drop - far_drop) / width

    def value(s: arb) -> arb:
        share = (growth - s) / (growth - 1)
        theta = (top / s - 1) / width
        return share * (near - theta * near_drop) + (1 - share) * (far - theta * far_drop)

    bottom = top / (1 + width)
    if not (a >= 0 and b >= 0):
        # Convexity is lost to the width of the balls: the ends of the chords bound them.
        return near.max(far)
    if b * top <= a * bottom * bottom:
        return value(bottom)
    if b * top >= a * top * top:
        return value(top)
    return (constant - 2 * (a * b * top).sqrt()) / (growth - 1)


def _gain(epsilon: Fraction, scale: int) -> tuple[int, int]:
    """epsilon/2 and (1 + epsilon²/20)·epsilon²/8, scaled and rounded up.

    A step is mu ← mu + gain/mu on integers, in units of 2^-scale, rounded up: mu − (−gain // mu).
    """
    p, q = epsilon.numerator, epsilon.denominator
    gain = (20 * q * q + p * p) * p * p  # over 160·q⁴
    return -(-(p << scale) // (2 * q)), -(-(gain << 2 * scale) // (160 * q**4))


def _scale(largest: Fraction) -> int:
    """So many bits that the largest step keeps ``_BITS`` of them."""
    return _BITS + max(0, largest.denominator.bit_length() - largest.numerator.bit_length())


def _scaled_up(value: Fraction, scale: int) -> int:
    return -(-(value.numerator << scale) // value.denominator)
