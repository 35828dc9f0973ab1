"""The noise of `CorrelatedCounts` as public numbers: its law in balls.

>>> CountNoise(10, Fraction(1, 2), Fraction(3), Fraction(8)).sigma
5.0
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from topsecret.accounting.pairs import normal_below
from topsecret.exact.rounding import ball


@dataclass(frozen=True, slots=True)
class CountNoise:
    """Z_i + weight·W for each of ``released`` counts, and W for the number of people."""

    released: int
    """How many counts are released."""
    weight: Fraction
    """λ"""
    item_scale: Fraction
    """√a, the deviation of Z_i."""
    common_scale: Fraction | None
    """√b, the deviation of W; None where there is no W."""

    @property
    def sigma(self) -> float:
        """The deviation of one count's noise."""
        common = 0.0 if self.common_scale is None else float(self.weight * self.common_scale)
        return math.hypot(float(self.item_scale), common)

    def nodes(self) -> tuple[list[tuple[arb, arb]], arb]:
        """Values of λW with masses that integrate the counts' law, and a ball of the error.

        The integrand φ(w)·Π(Φ(u_i) − Φ(l_i)) is entire, and on the line of imaginary part c at most
        φ(w)·e^(c²(1 + mκ²)/2), κ = λ√b/√a. So the trapezoidal rule of step h errs by at most
        2·e^(c²(1 + mκ²)/2)/(e^(2πc/h) − 1) for every c > 0 (Trefethen & Weideman 2014, Thm 5.1),
        and what is cut off on each side beyond R by Φ(−R), as the integrand is at most φ.
        """
        if self.common_scale is None:
            return [(arb(0), arb(1))], arb(0)
        bits = ctx.prec
        spread = ball(self.weight * self.common_scale)
        growth = float(1 + self.released * (self.weight * self.common_scale / self.item_scale) ** 2)
        wanted = bits * math.log(2) + 3
        step = 2 * math.pi / math.sqrt(2 * growth * wanted)
        count = math.ceil(math.sqrt(2 * wanted) / step)
        h = arb(step)
        c = 2 * arb.pi() / (h * arb(growth))
        error = 2 * (c * c * arb(growth) * (1 + arb(2) ** -40) / 2).exp()
        error /= (2 * arb.pi() * c / h).expm1()
        error += 4 * normal_below(-h * (count - 1))
        root = (2 * arb.pi()).sqrt()
        nodes = [
            (spread * h * k, h * (-((h * k) ** 2) / 2).exp() / root)
            for k in range(-count, count + 1)
        ]
        return nodes, error.abs_upper().union(-error.abs_upper())

    def cell_masses(self, count: int, low: int, high: int, shift: arb) -> list[tuple[int, arb]]:
        """The law of one rounded count in a window, given λW; the ends carry the tails."""
        if low == high:
            return [(low, arb(1))]
        scale = ball(self.item_scale)
        below = [
            normal_below((ball(Fraction(2 * x + 1, 2) - count) - shift) / scale)
            for x in range(low, high)
        ]
        inner = [(low + i + 1, below[i + 1] - below[i]) for i in range(len(below) - 1)]
        return [(low, below[0]), *inner, (high, 1 - below[-1])]
