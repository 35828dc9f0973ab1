"""How far one comparison can move the stationary distribution, for all data at once.

**The chain.** Item i has met item j n_ij times (public) and lost w_ji of them (ties half). D is at
least the largest number of comparisons of any item. P_ij = w_ji/D for j ≠ i, P_ii takes the rest,
and with a public teleport θ the walk is P_θ = (1 − θ)·P + θ/m. π is its stationary distribution:
walkers flow to winners.

When every pair that meets does so L times, D = d·L and P_ij = y_ij/d: this is the chain of Qiao, Su
& Zhang 2021, Alg. 3. With n_ij of different sizes, counts serve better than shares: under
Bradley–Terry w_ji/n_ij = s_j/(s_i + s_j), and π ∝ s satisfies detailed balance whatever the n_ij;
and one comparison moves P by 1/D however rarely its pair met.

**Claim.** Let L be the smallest n_ij over *all* pairs (0 if some pair never met). Then between
neighbours every coordinate of π moves by at most

    S = (1 − θ) / (θ·D + (1 − θ)·L).

θ = 0 on a complete graph: S = 1/L. L = 0: S = (1 − θ)/(θ·D), which is (1 − θ)/(θ·d·n) when each of
d pairs meets n times.

**Proof.** (1) *One comparison.* i beats j no more but loses: P_ij and P_jj rise by a = 1/D, P_ii
and P_ji fall by a (a tie moves half as much). With E = P′_θ − P_θ, π′E = (1 − θ)·a·(π′_i +
π′_j)·(e_j − e_i).

(2) *Contraction.* For a row vector x that sums to 0, ‖x·P_θ‖₁ ≤ τ₁‖x‖₁ with τ₁ =
½·max_{i,j} Σ_l |P_il − P_jl| = 1 − min_{i,j} Σ_l min(P_il, P_jl). From π′ − π = (π′ − π)P_θ + π′E
follows ‖π′ − π‖₁ ≤ ‖π′E‖₁/(1 − τ₁) ≤ 2(1 − θ)a/(1 − τ₁); the coordinates sum to 0, so each is at
most half of that (Qiao et al. do not use this half).

(3) *Overlap of P.* For i ≠ j: P_ii = 1 − (losses of i)/D ≥ (wins of i)/D ≥ w_ij/D = P_ji, since
wins and losses together are at most D. So min(P_ii, P_ji) = P_ji, likewise min(P_ij, P_jj) = P_ij,
and the overlap is at least (w_ij + w_ji)/D = n_ij/D ≥ L/D, **whatever the outcomes**. With teleport
1 − τ₁(P_θ) = 1 − (1 − θ)·τ₁(P) ≥ θ + (1 − θ)·L/D =: κ. Put together: S = (1 − θ)a/κ. ∎

**The paper's condition.** It asks for a ρ with τ₁(P) ≤ ρ < 1. On a graph that is not complete two
items that never met and win everything have P_ii = P_jj = 1, so τ₁ = 1: no ρ < 1 holds for all
data. A `PromisedMixing` is therefore an assumption about the secret data, kept by name, for
reproduction. If it is false, nothing is promised.

>>> unconditional(most_games=30, fewest_meetings=10)
Mixing(sensitivity=Fraction(1, 10), overlap=Fraction(1, 3), assumption=None)
>>> unconditional(most_games=30, fewest_meetings=0, teleport=Fraction(1, 4)).sensitivity
Fraction(1, 10)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact
from topsecret.mechanisms import parameters


@dataclass(frozen=True, slots=True)
class Mixing:
    """What is known of the chain on all datasets of one schedule."""

    sensitivity: Fraction
    """S: how far one comparison moves any coordinate of π."""
    overlap: Fraction
    """κ: a lower bound of 1 − τ₁."""
    assumption: str | None = None
    """What was assumed about the secret data, if anything was."""


@dataclass(frozen=True, slots=True)
class PromisedMixing:
    """The caller's promise that τ₁(P) ≤ ``rho`` on the data and on all its neighbours.

    Not checked and not implied by any schedule that is not complete: the guarantee holds only
    for data that keep the promise. Prefer a teleport.
    """

    rho: Number

    def __post_init__(self) -> None:
        if not 0 <= exact(self.rho, "rho") < 1:
            raise InvalidParameter(f"rho={self.rho} must be at least 0 and below 1")


def teleport_of(value: Number) -> Fraction:
    """A public probability of starting anew, in [0, 1)."""
    theta = exact(value, "teleport")
    if not 0 <= theta < 1:
        raise InvalidParameter(f"teleport={value} must be at least 0 and below 1, such as 0.3")
    return theta


def unconditional(most_games: int, fewest_meetings: int, teleport: Number = 0) -> Mixing:
    """S and κ for all data of a schedule with this D and L."""
    parameters.whole(most_games, "most_games")
    parameters.whole(fewest_meetings, "fewest_meetings", at_least=0)
    theta = teleport_of(teleport)
    divisor = theta * most_games + (1 - theta) * fewest_meetings
    if divisor == 0:
        raise InvalidParameter(
            "some pair of items never met, so that without teleport one comparison may move the "
            "ranking without limit; pass teleport=0.3, say, or use the method counting"
        )
    return Mixing((1 - theta) / divisor, divisor / most_games)


def promised(most_games: int, promise: PromisedMixing) -> Mixing:
    """S and κ if τ₁ ≤ ρ: 1/(D·(1 − ρ)), half of the paper's bound."""
    parameters.whole(most_games, "most_games")
    left = 1 - exact(promise.rho)
    return Mixing(
        1 / (most_games * left),
        left,
        f"the caller promised tau_1 <= {float(promise.rho):g} for the data and all neighbours; "
        "where that is false, nothing is guaranteed",
    )
