"""Bradley–Terry strengths from noisy win totals, with error bars. Post-processing throughout.

In this model i beats j with probability 1/(1 + e^(θ_j − θ_i)). On a public schedule n_ij the wins
w_i are sufficient. Only w̃_i = w_i + noise is known here, of public variance v.

**Estimate.** θ̂ solves w̃_i − Σ_j n_ij/(1 + e^(κ_ij(θ_j − θ_i))) = Λ_i·θ_i with Λ_i = (1 +
v/(n_i·g))/τ²: the usual fit with a normal prior of standard deviation τ, which counts for more
where the noise exceeds what n_i games can tell (g is about the mean of p(1 − p)). κ ≤ 1 makes
allowance for what is not known of both strengths: the mean of a logistic function over a normal of
variance s² is about that of its mean divided by √(1 + πs²/8).

Left minus right is the gradient of a strictly concave function, so there is one solution; Newton's
method with conjugate gradients finds it. ``residual`` is the largest |left − right|, in wins. How
many wins a connected part has in all is public, so the mean of its noise is taken away first. τ is
estimated from θ̂ by its second moment.

**Error bars.** To first order θ̂ − θ = H⁻¹(ξ + ν − Λθ) with H = L + Λ, L the Laplacian of the
weights n_ij·κ_ij·p_ij·p_ji, ξ the luck of the games (of covariance L), ν the noise (v·I) and θ of
the prior (τ²·I): covariance C = H⁻¹(L + v + τ²Λ²)H⁻¹. ``tail`` widens v in the bars for a noise
whose 95% lie further out than a normal's.

Strengths are centred: 0 is the average of the items that can be compared with each other (a
connected part), and the bars are about that. Up to `DENSE` items C is computed outright; beyond,
the leading terms of its diagonal are in closed form and the small rest is found by probing with
fixed signs. The bars are a model's: privacy rests on none of this.

>>> games = sparse.csr_array(np.array([[0, 40, 40], [40, 0, 40], [40, 40, 0]]))
>>> fit = BradleyTerry(games, noise_variance=2.0).fit(np.array([60.0, 40.0, 20.0]))
>>> (10 * fit.strengths).round().astype(int).tolist(), fit.residual < 1e-6
([7, 0, -7], True)
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]

DENSE = 1_000
"""Up to this many items the covariance is computed outright."""
TOLERANCE = 1e-7
"""The fit ends when no part of its gradient, in wins, is larger than this."""
PROBES = 48
"""Random vectors from which the diagonal of the covariance is estimated."""
TRACES = 12
"""Random vectors from which the moments are estimated that τ is found by."""
ROUNDS = 12
"""At most so many rounds of fitting and looking for τ."""
SPREADS = (0.05, 5.0)
"""The smallest and the largest τ that is tried."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Strengths with their standard errors. All of it may be shown."""

    strengths: Floats
    """Of the items: log odds against the average one."""
    standard_errors: Floats
    """Of each strength."""
    spread: float
    """τ, the standard deviation of strengths."""
    residual: float
    """How far the equations are from being solved, in wins."""


class BradleyTerry:
    """The model on one public schedule: how often each pair met, symmetric and sparse."""

    def __init__(self, games: Any, noise_variance: float, tail: float = 1.0) -> None:
        upper = sparse.triu(games, k=1).tocoo()
        self._first, self._second = upper.row.astype(np.int64), upper.col.astype(np.int64)
        self._met = upper.data.astype(np.float64)
        self.size = int(games.shape[0])
        self.noise = noise_variance
        self.tail = tail
        self._played = self._sums(self._met, self._met)
        self.parts = np.asarray(connected_components(games, directed=False)[1], dtype=np.int64)

    def fit(self, wins: Floats) -> Fit:
        """The strengths for these noisy wins, with error bars."""
        theta, spread, residual = self._estimate(wins)
        variances = Covariance(self, theta, spread).variances()
        return Fit(centred(theta, self.parts), np.sqrt(variances), spread, residual)

    def strengths(self, wins: Floats) -> Floats:
        """The strengths alone."""
        return centred(self._estimate(wins)[0], self.parts)

    def _estimate(self, wins: Floats) -> tuple[Floats, float, float]:
        """θ̂, τ and the residual."""
        theta, spread = np.zeros(self.size), 1.0
        # How many games a part had is public, and so is the sum of its wins.
        even = self._played / 2
        wins = even + centred(wins - even, self.parts)
        for _ in range(ROUNDS):
            theta, _ = self._solve(wins, theta, spread)
            found = Covariance(self, theta, spread).spread(theta)
            settled = abs(found - spread) < 0.01 * spread
            spread = found
            if settled:
                break
        theta, residual = self._solve(wins, theta, spread)
        return theta, spread, residual

    def difference(self, fit: Fit, one: int, other: int) -> float:
        """The standard error of the difference between two strengths."""
        return Covariance(self, fit.strengths, fit.spread).difference(one, other)

    def ridge(self, spread: float) -> Floats:
        """Λ: public but for τ."""
        told = self._played * _mean_slope(2 * spread**2)
        return np.asarray(
            (1 + np.minimum(self.noise / np.maximum(told, 1e-9), 1e9)) / spread**2,
            dtype=np.float64,
        )

    def weights(self, theta: Floats, spread: float) -> tuple[Any, Floats]:
        """The off-diagonal part W of the Laplacian, and its diagonal."""
        factor = self._factors(spread)
        chance = _chances(factor * self._leads(theta))
        weight = self._met * factor * chance * (1 - chance)
        ends = (np.r_[self._first, self._second], np.r_[self._second, self._first])
        off = sparse.csr_array((np.r_[weight, weight], ends), shape=(self.size, self.size))
        return off, self._sums(weight, weight)

    def _factors(self, spread: float) -> Floats:
        """κ of each pair, from the local posterior variances of its items."""
        told = self._played * _mean_slope(2 * spread**2)
        local = 1 / (1 / spread**2 + told**2 / np.maximum(told + self.noise, 1e-9))
        return np.asarray(
            1 / np.sqrt(1 + math.pi / 8 * (local[self._first] + local[self._second])),
            dtype=np.float64,
        )

    def _solve(self, wins: Floats, theta: Floats, spread: float) -> tuple[Floats, float]:
        ridge, factor = self.ridge(spread), self._factors(spread)
        value = self._objective(wins, theta, ridge, factor)
        residual = math.inf
        for _ in range(100):
            chance = _chances(factor * self._leads(theta))
            expected = self._sums(self._met * chance, self._met * (1 - chance))
            gradient = wins - expected - ridge * theta
            residual = float(np.abs(gradient).max(initial=0.0))
            if residual <= TOLERANCE:
                break
            off, diagonal = self.weights(theta, spread)
            step = solve(off, diagonal + ridge, gradient, min(1e-2, 0.1 * TOLERANCE / residual))
            length = 1.0
            while length > 1e-9:
                moved = theta + length * step
                new = self._objective(wins, moved, ridge, factor)
                if new >= value - 1e-12 * abs(value):
                    break
                length /= 2
            theta, value = moved, new
        return theta, residual

    def _objective(self, wins: Floats, theta: Floats, ridge: Floats, factor: Floats) -> float:
        """What the estimate makes largest: its gradient is left minus right."""
        lead = factor * self._leads(theta)
        losses = (np.logaddexp(0.0, lead) - lead / 2) * self._met / factor
        even = self._played / 2
        return float((wins - even) @ theta - losses.sum() - 0.5 * (ridge * theta) @ theta)

    def _leads(self, theta: Floats) -> Floats:
        return np.asarray(theta[self._first] - theta[self._second], dtype=np.float64)

    def _sums(self, of_first: Floats, of_second: Floats) -> Floats:
        return np.asarray(
            np.bincount(self._first, of_first, self.size)
            + np.bincount(self._second, of_second, self.size),
            dtype=np.float64,
        )


class Covariance:
    """C = H⁻¹(L + v + τ²Λ²)H⁻¹ = H⁻¹ + H⁻¹BH⁻¹ with the diagonal B = v + τ²Λ² − Λ ≥ 0."""

    def __init__(self, model: BradleyTerry, theta: Floats, spread: float) -> None:
        self._off, self._laplacian = model.weights(theta, spread)
        self._ridge = model.ridge(spread)
        self._diagonal = self._laplacian + self._ridge
        self._noise = model.noise
        self._extra = model.tail * model.noise + spread**2 * self._ridge**2 - self._ridge
        self._part = model.parts

    def spread(self, theta: Floats) -> float:
        """τ by the second moment of the centred strengths.

        With A = PH⁻¹, E|Pθ̂|² = tr A(τ²L² + L + vP)Aᵀ. Where little is known the moment may come
        out near 0 or below by chance: τ² is at least one standard error of it under τ = 0, so that
        error bars are not narrow for lack of information.
        """
        size = len(theta)
        probes = np.eye(size) if size <= DENSE else _signs(size, TRACES)
        count = 1 if size <= DENSE else TRACES
        inner = self._inverse(self._centre(probes))
        image = self._laplacian[:, None] * inner - self._off @ inner
        centred = self._centre(inner)
        luck = ((inner * image).sum() + self._noise * (centred**2).sum()) / count
        shown = max(float((image**2).sum()) / count, 1e-12)
        law = self._centre(self._inverse(image + self._noise * centred))
        error = math.sqrt(2 * float((law**2).sum()) / count)
        told = self._centre(theta)
        squared = max(float(told @ told - luck), error) / shown
        return math.sqrt(min(max(squared, SPREADS[0] ** 2), SPREADS[1] ** 2))

    def _centre(self, values: Floats) -> Floats:
        """P: each part's mean taken away."""
        return centred(values, self._part)

    def variances(self) -> Floats:
        """Of the centred strengths: the diagonal of PCP, P taking each part's mean away."""
        size = len(self._diagonal)
        raw = self._outright() if size <= DENSE else self._probed()
        sizes = np.bincount(self._part)
        with_all = self._times(np.ones(size))
        whole = np.bincount(self._part, with_all)[self._part]
        members = sizes[self._part]
        found = np.maximum(raw - 2 * with_all / members + whole / members**2, 0.0)
        # Of an item that met nobody nothing is known: its bar is the prior's.
        return np.asarray(np.where(members > 1, found, raw), dtype=np.float64)

    def difference(self, one: int, other: int) -> float:
        """The standard error of θ_(one) − θ_(other)."""
        if one == other:
            return 0.0
        apart = np.zeros(len(self._diagonal))
        apart[one], apart[other] = 1.0, -1.0
        return math.sqrt(max(0.0, float(apart @ self._times(apart))))

    def _times(self, vector: Floats) -> Floats:
        inner = self._inverse(vector)
        return np.asarray(inner + self._inverse(self._extra * inner), dtype=np.float64)

    @cached_property
    def _dense(self) -> Floats:
        return np.asarray(np.linalg.inv(np.diag(self._diagonal) - self._off.toarray()))

    def _inverse(self, right: Floats) -> Floats:
        if len(self._diagonal) <= DENSE:
            return np.asarray(self._dense @ right)
        return solve(self._off, self._diagonal, right, 1e-6)

    def _outright(self) -> Floats:
        return np.asarray(np.diag(self._dense) + (self._dense**2) @ self._extra)

    def _probed(self) -> Floats:
        """With D the diagonal of H, N = D⁻¹W: H⁻¹ = D⁻¹ + ND⁻¹ + N²D⁻¹ + …"""
        signs = _signs(len(self._diagonal), PROBES)
        one = 1 / self._diagonal
        squares = self._off.multiply(self._off).tocsr()
        # diag of N²D⁻¹, and of (D⁻¹ + ND⁻¹)B(D⁻¹ + ND⁻¹).
        inverse = one + one**2 * (squares @ one)
        spread = one**2 * self._extra + one**2 * (squares @ (one**2 * self._extra))

        def first(x: Floats) -> Floats:
            return np.asarray(one[:, None] * (x + self._off @ (one[:, None] * x)))

        scaled = np.sqrt(self._extra)[:, None] * signs
        both = self._inverse(np.hstack([signs, scaled]))
        near = first(signs)
        second = near + one[:, None] * (
            self._off @ (one[:, None] * (self._off @ (one[:, None] * signs)))
        )
        inverse = inverse + (signs * (both[:, :PROBES] - second)).mean(axis=1)
        known = first(scaled)
        spread = spread + (both[:, PROBES:] ** 2 - known**2).mean(axis=1)
        return np.asarray(np.maximum(inverse, one) + np.maximum(spread, 0.0))


def centred(values: Floats, parts: NDArray[np.int64]) -> Floats:
    """The values less the mean of their part."""
    sizes = np.bincount(parts)
    pick = sparse.csr_array(
        (np.ones(len(parts)), (parts, np.arange(len(parts)))), shape=(len(sizes), len(parts))
    )
    means = (pick @ values) / (sizes if values.ndim == 1 else sizes[:, None])
    return np.asarray(values - means[parts], dtype=np.float64)


def _chances(lead: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(lead / 2)), dtype=np.float64)


def _mean_slope(variance: float) -> float:
    """About the mean of p(1 − p) for a lead of mean 0 and this variance."""
    return 0.25 / math.sqrt(1 + math.pi / 8 * variance)


def solve(off: Any, diagonal: Floats, right: Floats, tolerance: float) -> Floats:
    """(diagonal − off)x = right by conjugate gradients, column by column, scaled by the diagonal.

    The matrix is symmetric with a diagonal that exceeds its row sums: the iteration converges.
    """
    scale = diagonal if right.ndim == 1 else diagonal[:, None]
    x = right / scale
    residue = right - (scale * x - off @ x)
    target = tolerance * np.sqrt((right**2 / scale).sum(axis=0)) + 1e-300
    direction = np.zeros_like(x)
    before = np.ones_like(target)
    for turn in range(10_000):
        scaled = residue / scale
        now = (residue * scaled).sum(axis=0)
        if np.all(np.sqrt(now) <= target):
            break
        direction = scaled + (now / before if turn else 0.0) * direction
        image = scale * direction - off @ direction
        bend = (direction * image).sum(axis=0)
        pace = np.divide(now, bend, out=np.zeros_like(now), where=bend > 0)
        x = x + pace * direction
        residue = residue - pace * image
        before = np.where(now > 0, now, 1.0)
    return np.asarray(x, dtype=np.float64)


def _signs(size: int, probes: int) -> Floats:
    """Fixed signs that look random: error bars are the same for the same release."""
    drawn = hashlib.shake_128(b"probes").digest((size * probes + 7) // 8)
    flags = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8))[: size * probes]
    return np.asarray(2.0 * flags.reshape(size, probes) - 1.0, dtype=np.float64)
