"""Mechanisms as OpenDP measurements (the extra ``opendp``).

>>> import opendp.prelude as dp
>>> dp.enable_features("contrib", "honest-but-curious")
>>> from topsecret.mechanisms import GumbelTopK
>>> measurement = zcdp_measurement(GumbelTopK(k=1, scale=2), size=3)
>>> measurement([900, 5, 0]), measurement.map(1)
([0], (0.03125, 0.0))

The input is a vector of counts of distinct people, one for each item of a public list, and the
answer the places of the named items in that list. Two vectors are at distance d when no count
differs by more than d, all in one direction (in any, for mechanisms made for ``replace``).

**Statement.** The privacy map bounds the divergence between the answers on vectors at distance d.

**Why.** At distance Δ_q (one person; Δ_q = 1 for counts) it is the ``loss``, rounded up.
A vector at distance d is reached in n = ⌈d/Δ_q⌉ steps of at most Δ_q, all in the same direction and
between the two, and for a chain of n neighbours

- ρ-zCDP gives n²ρ-zCDP (Bun & Steinke 2016, Prop. 1.9); with failures no such bound is offered;
- (ε, δ)-DP gives (nε, δ·(1 + e^ε + … + e^((n−1)ε)))-DP, by induction on n.

A cap on the items of one person is not a distance of vectors, so a mechanism that relies on
``max_items`` is refused unless the list is no longer than the cap.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter, MissingExtra
from topsecret.exact.rounding import Number, ball, exact, precision, up
from topsecret.mechanisms import Mechanism

Measurement = Any  # the type of an optional package


def zcdp_measurement(mechanism: Mechanism, *, size: int) -> Measurement:
    """The mechanism on a list of ``size`` items, under approximate zCDP: (ρ, δ).

    Refused for a loss that has no ρ: one with slack, which is added to ε, or a Rényi curve.

    Parameters: ``mechanism``: what answers; ``size``: how many counts the input has.
    """
    loss = mechanism.loss
    rho = loss.rho()
    if rho is None or loss.slack:
        raise InvalidParameter(
            f"the loss of {type(mechanism).__name__} is not zCDP; use approximate_measurement"
        )
    failures = up(loss.failures)

    def privacy_map(persons: int) -> tuple[float, float]:
        steps = _steps(mechanism, persons)
        if steps > 1 and loss.failures:
            raise InvalidParameter(
                f"d_in={persons} must be one person's for approximate zCDP;"
                " use approximate_measurement"
            )
        return up(steps * steps * exact(rho)), failures if steps else 0.0

    dp = _opendp()
    return _measurement(
        mechanism, size, dp.approximate(dp.zero_concentrated_divergence()), privacy_map
    )


def approximate_measurement(mechanism: Mechanism, *, size: int, delta: Number) -> Measurement:
    """The mechanism on a list of ``size`` items, under (ε, δ)-DP at this δ for one person.

    Parameters, beside those of ``zcdp_measurement``: ``delta``: at which ε is stated.
    """
    epsilon = mechanism.loss.epsilon(delta)
    at = exact(delta, "delta")

    def privacy_map(persons: int) -> tuple[float, float]:
        steps = _steps(mechanism, persons)
        if steps == 0:
            return 0.0, 0.0
        with precision(96):
            growth = sum((ball(i * exact(epsilon)).exp() for i in range(steps)), ball(0))
            return up(steps * exact(epsilon)), min(1.0, up(ball(at) * growth))

    return _measurement(mechanism, size, _opendp().fixed_smoothed_max_divergence(), privacy_map)


def _measurement(
    mechanism: Mechanism,
    size: int,
    measure: Any,
    privacy_map: Callable[[int], tuple[float, float]],
) -> Measurement:
    dp = _opendp()
    _check_size(mechanism, size)

    def select(counts: list[int]) -> list[Any]:
        if len(counts) != size:  # OpenDP does not look; the length is public
            raise InvalidParameter(
                f"{len(counts)} counts were given for a list of size={size}; pass one for each"
            )
        # Cutting at 0 brings no two vectors further apart.
        histogram = Histogram.from_counts(np.maximum(np.array(counts, dtype=np.int64), 0))
        return list(mechanism.select(histogram).items)

    return dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T="i64"), size=size),
        dp.linf_distance(T="u32", monotonic=not _moves_both_ways(mechanism)),
        measure,
        select,
        privacy_map,
        TO="Vec<i32>",
    )


def _check_size(mechanism: Mechanism, size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidParameter(f"size={size!r} must be a whole number, 1 or more")
    if said := getattr(mechanism, "precondition", ""):
        raise InvalidParameter(
            f"{type(mechanism).__name__} holds only where {said}, which no distance between "
            "vectors of counts says; use another mechanism"
        )
    cap = getattr(mechanism, "max_items", None)
    if cap is not None and cap < size:
        raise InvalidParameter(
            f"max_items={cap} is no distance between vectors of size={size};"
            " use a mechanism without a cap"
        )


def _moves_both_ways(mechanism: Mechanism) -> bool:
    return getattr(mechanism, "adjacency", "add-remove") == "replace"


def _steps(mechanism: Mechanism, distance: int) -> int:
    """How many neighbours lead from one vector to the other."""
    most: Fraction = exact(getattr(mechanism, "sensitivity", 1))
    return -(-distance // most)


def _opendp() -> Any:
    try:
        return importlib.import_module("opendp.prelude")
    except ImportError:
        pass
    raise MissingExtra("OpenDP is not installed; run pip install '.[opendp]' in the checkout")
