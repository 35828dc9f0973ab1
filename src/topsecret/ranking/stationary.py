"""The stationary distribution in floating point, with a proven bound on its error.

The sensitivity S of ``sensitivity.py`` is that of the real π. What is ranked is a float vector π̂,
and if |π̂_i − π_i| ≤ η on *every* dataset of the schedule, π̂ moves by at most S + 2η between
neighbours. η is a public number: it depends on the schedule and on θ alone, never on outcomes.

**One step** x ↦ x·P_θ is computed as (1 − θ)·[x + (W x − l∘x)/D] + θ/m·Σx, W_ji = w_ji the wins of
j over i, l the losses. All entries of W, l and D are exact floats (half-integers below 2⁵²).

With u = 2⁻⁵³, n the largest number of opponents and x ≥ 0: (W x)_j has a relative error below
1.01·(n + 1)·u, and Σ_j (W x)_j ≤ D·‖x‖₁, Σ l_j x_j ≤ D·‖x‖₁. The seven other operations have
relative errors of u each on vectors of norm at most 3‖x‖₁, and NumPy's pairwise Σx one below (128 +
64)·u. In all, the step is off by at most g·‖x‖₁ in the L1 norm with g = 4(n + 256)·u, twice what is
needed.

**A posteriori.** Let r = x̂P_θ − x̂, e = x̂ − π = e₀ + σπ with e₀ summing to 0, σ = Σx̂ − 1. Then
e₀ − e₀P_θ = −r up to the part of σπ, which P_θ keeps, so ‖e₀‖₁ ≤ ‖r‖₁/κ, κ ≤ 1 − τ₁; each
coordinate of e₀ is at most half of that: |e_i| ≤ ‖r‖₁/(2κ) + |σ|. ‖r‖₁ and σ are summed by
``fsum``; the rounding of the step adds g‖x̂‖₁ to ‖r‖₁.

**A priori.** T steps from any distribution leave at most 2(1 − κ)^T + g′/κ in the L1 norm, g′ = 2g
(a step and a normalisation), which is at most 3g/κ after T = ⌈ln(2κ/g)/κ⌉ steps; half of it per
coordinate. So η = max(S/2²⁰, 3g/κ) can always be had: a guess comes from a direct or a Krylov
solver, steps polish it, and they end when the a posteriori bound is at most η, after T at the
latest. A guess never decides anything: if it is poor, the steps take longer.

If a `PromisedMixing` is false, κ is, and the result is some vector that depends on the data:
nothing was guaranteed then. It never fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, gmres

from topsecret.ranking.comparisons import Comparisons
from topsecret.ranking.sensitivity import Mixing

Floats = NDArray[np.float64]

DENSE = 2_000
"""Up to this many items a direct solver makes the guess."""
_UNIT = 2.0**-53
_CHECK_EVERY = 8


@dataclass(frozen=True, slots=True)
class Stationary:
    """π̂ (secret), and η, the proven and public bound of its error in each coordinate."""

    scores: Floats
    error: Fraction


class Chain:
    """One step of the walk, in floating point. Secret."""

    def __init__(self, comparisons: Comparisons, teleport: Fraction) -> None:
        self.size = len(comparisons.items)
        self._wins = comparisons.wins
        self._losses = np.asarray(self._wins.sum(axis=0)).ravel()
        self._most_games = float(comparisons.most_games)
        self._stay = float(1 - teleport)
        self._restart = float(teleport) / max(1, self.size)
        self.rounding = 4 * (comparisons.most_opponents + 256) * _UNIT
        """g, public."""

    def step(self, x: Floats) -> Floats:
        """x ↦ x·P_θ."""
        flow = (self._wins @ x - self._losses * x) / self._most_games
        moved: Floats = self._stay * (x + flow) + self._restart * x.sum()
        return np.maximum(moved, 0.0)  # what rounding put below 0 only comes closer to π

    def guess(self, teleport: Fraction) -> Floats:
        """About π, quickly; no promise."""
        even = np.full(self.size, 1.0 / self.size)
        if self.size <= DENSE:
            found = self._direct()
        elif teleport > 0:
            found = self._krylov()
        else:
            return even
        found = np.maximum(np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0), 0.0)
        total = float(found.sum())
        return found / total if 0 < total < math.inf else even

    def _direct(self) -> Floats:
        wins = self._wins.toarray()
        system = np.diag(self._losses) - wins
        system *= self._stay / self._most_games
        system += np.diag(np.full(self.size, 1 - self._stay)) - self._restart
        system[0] = 1.0  # the equations add up to 0: one of them gives way to Σx = 1
        right = np.zeros(self.size)
        right[0] = 1.0
        try:
            return np.asarray(np.linalg.solve(system, right), dtype=np.float64)
        except np.linalg.LinAlgError:
            return np.ones(self.size)

    def _krylov(self) -> Floats:
        """x − (1 − θ)·xP = θ/m by GMRES, scaled by its diagonal."""
        diagonal = 1 - self._stay * (1 - self._losses / self._most_games)

        def residue(x: Any) -> Any:
            flat = np.asarray(x, dtype=np.float64).ravel()
            flow = (self._wins @ flat - self._losses * flat) / self._most_games
            return flat - self._stay * (flat + flow)

        shape = (self.size, self.size)
        system = LinearOperator(shape, matvec=residue, dtype=np.float64)
        scaled = LinearOperator(shape, matvec=lambda x: x / diagonal, dtype=np.float64)
        right = np.full(self.size, self._restart)
        found, _ = gmres(system, right, M=scaled, rtol=1e-13, atol=0.0, restart=30, maxiter=10)
        return np.asarray(found, dtype=np.float64)


def attainable_error(chain: Chain, mixing: Mixing) -> Fraction:
    """η: public."""
    return max(mixing.sensitivity / 2**20, 3 * Fraction(chain.rounding) / mixing.overlap)


def stationary(comparisons: Comparisons, teleport: Fraction, mixing: Mixing) -> Stationary:
    """π̂ with its error bound, for a chain that mixes as ``mixing`` says."""
    chain = Chain(comparisons, teleport)
    error = attainable_error(chain, mixing)
    overlap = float(mixing.overlap)
    most = math.ceil(math.log(max(2.0, 2 * overlap / chain.rounding)) / overlap) + 1
    x = chain.guess(teleport)
    for turn in range(most):
        moved = chain.step(x)
        if turn % _CHECK_EVERY == 0 and _proven(x, moved, chain.rounding, mixing) <= error:
            break
        x = moved / moved.sum()
    return Stationary(x, error)


def _proven(x: Floats, moved: Floats, rounding: float, mixing: Mixing) -> Fraction:
    """The a posteriori bound for x, given its step as computed."""
    total = Fraction(math.fsum(x))
    # fsum is correctly rounded, the differences have one rounding each: 2⁻⁵¹ covers both.
    residual = Fraction(math.fsum(np.abs(moved - x))) * (1 + Fraction(1, 2**51))
    residual += Fraction(rounding) * total * (1 + Fraction(1, 2**51))
    return residual / (2 * mixing.overlap) + abs(total - 1) + Fraction(1, 2**53)
