"""What the multi-label PATE run of Zhu & Wang 2022, Table 2, costs by every charge.

600 queries over 40 labels: a Gaussian selection (sigma 50) of the largest of 39 gaps and a
Gaussian test (sigma 60, failure 1e-9) for each, at a total delta of 1e-6. The paper reports 3.6.

>>> print(table())
adjacency = add-remove, delta = 1e-06
epsilon  charge
  3.665  selection without its ln(m) term: not a valid charge
  71.18  Corollary 9, the paper's conversion
  21.52  the better of Corollary 9 and the joint Gaussian, the paper's conversion
  20.48  the same by the conversion of Canonne et al. 2020
  4.348  Gumbel selection of the same standard deviation, the paper's conversion
  3.917  the same by the conversion of Canonne et al. 2020
  3.673  the same by the optimal recursion
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from flint import arb

from topsecret.accounting.explanation import shown
from topsecret.accounting.loss import failure, gaussian, picks
from topsecret.accounting.renyi import Curve, GaussianSelection, mironov_epsilon, renyi_epsilon
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, precision, up

QUERIES = 600
LABELS = 40
SELECTION_SIGMA = 50
TEST_SIGMA = 60
TEST_FAILURE = Fraction(1, 10**9)
DELTA = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class Charge:
    """One way to account the run."""

    epsilon: float
    how: str
    valid: bool = True


@dataclass(frozen=True, slots=True)
class ChargeTable:
    """All charges under one neighbouring relation."""

    adjacency: str
    charges: tuple[Charge, ...]

    def __str__(self) -> str:
        head = f"adjacency = {self.adjacency}, delta = {float(DELTA):g}\nepsilon  charge"
        return "\n".join(
            [head, *(f"{shown(row.epsilon, 4):>7}  {row.how}" for row in self.charges)]
        )


Relation = Literal["add-remove", "replace"]


def relations(adjacency: str | None = None) -> tuple[Relation, ...]:
    """The neighbouring relation of that name, or both."""
    known: tuple[Relation, ...] = ("add-remove", "replace")
    found = tuple(relation for relation in known if adjacency in (None, relation))
    if not found:
        raise InvalidParameter(f"adjacency={adjacency!r} must be 'add-remove' or 'replace'")
    return found


@lru_cache(maxsize=2)
def table(adjacency: Relation = "add-remove") -> ChargeTable:
    """Every charge of the run; a gap moves by 1 under add-remove and by 2 under replace."""
    relations(adjacency)
    moves = 1 if adjacency == "add-remove" else 2
    left = DELTA - QUERIES * TEST_FAILURE
    variance = Fraction(SELECTION_SIGMA**2)
    test_signal = Fraction(moves**2, TEST_SIGMA**2)
    free = Fraction(moves**2) / variance / 2
    printed = GaussianSelection(LABELS - 1, variance, moves, joint=False)
    better = GaussianSelection(LABELS - 1, variance, moves)

    def whole(selection: Curve) -> Callable[[arb], arb]:
        return lambda alpha: QUERIES * (selection(alpha) + alpha * ball(test_signal / 2))

    with precision(96):  # a Gumbel of scale tau has standard deviation pi tau / sqrt 6
        price = Fraction(up(2 * moves * arb.pi() / (arb(6).sqrt() * SELECTION_SIGMA)))

    def gumbel(alpha: arb) -> arb:
        return alpha * ball(price * price / 8)

    loss = QUERIES * (picks(1, price) + gaussian(test_signal) + failure(TEST_FAILURE))
    charges = (
        Charge(
            mironov_epsilon(whole(lambda alpha: alpha * ball(free)), left),
            "selection without its ln(m) term: not a valid charge",
            valid=False,
        ),
        Charge(
            mironov_epsilon(whole(printed), left),
            "Corollary 9, the paper's conversion",
        ),
        Charge(
            mironov_epsilon(whole(better), left),
            "the better of Corollary 9 and the joint Gaussian, the paper's conversion",
        ),
        Charge(
            renyi_epsilon(whole(better), left),
            "the same by the conversion of Canonne et al. 2020",
        ),
        Charge(
            mironov_epsilon(whole(gumbel), left),
            "Gumbel selection of the same standard deviation, the paper's conversion",
        ),
        Charge(
            renyi_epsilon(whole(gumbel), left),
            "the same by the conversion of Canonne et al. 2020",
        ),
        Charge(loss.epsilon(DELTA), "the same by the optimal recursion"),
    )
    return ChargeTable(adjacency, charges)
