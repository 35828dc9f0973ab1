"""The accounting that the papers themselves use, for comparison; nothing is released by it.

Plain floats and bisection: these numbers say what a paper's noise was, not what is proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def advanced(steps: int, epsilon: float, delta: float) -> float:
    """Advanced composition of pure steps: the smaller of it and the sum of the epsilons."""
    root = math.sqrt(2 * steps * math.log(1 / delta))
    return min(steps * epsilon, epsilon * root + steps * epsilon * math.expm1(epsilon))


def durfee_rogers(picks: int, price: float, delta: float) -> float:
    """Durfee & Rogers 2019, Lemma 4.4 for equal picks."""
    surprise, squares = math.log(1 / delta), picks * price * price
    drift = picks * price * math.tanh(price / 2)
    return min(
        picks * price,
        drift + math.sqrt(2 * squares * surprise),
        squares / 2 + math.sqrt(squares * surprise / 2),
    )


def mironov(rho: float, delta: float) -> float:
    """zCDP to (ε, δ) by ρ + 2√(ρ·ln(1/δ))."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def misprinted(rho: float, delta: float) -> float:
    """Zhu & Wang 2022, Theorem 11 as printed: ρ + √(2ρ·ln(1/δ)), which is not implied."""
    return rho + math.sqrt(2 * rho * math.log(1 / delta))


def largest(spent: Callable[[float], float], epsilon: float) -> float:
    """The largest parameter whose cost keeps to epsilon; costs rise with the parameter."""
    low, high = 0.0, 1.0
    while spent(high) <= epsilon:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return low
