"""Counts beside a selection: which part of the budget they get, and what noise that buys.

>>> from topsecret.calibration import Question
>>> selection, counts = with_counts("gumbel", Question.of(k=5, epsilon=1, domain_size=50), 0.25)
>>> (selection.mechanism.loss + counts.loss).epsilon(1e-6) <= 1
True
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from topsecret.accounting import Loss, calibrate, discrete_gaussian, zcdp
from topsecret.calibration import prepare
from topsecret.calibration.prepared import Prepared
from topsecret.calibration.question import Question
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import down, exact
from topsecret.mechanisms import NoisyCounts
from topsecret.noise.bits import BitSource

CONFIDENCE = 0.95
MORE = (1.15, 1.1, 1.05)
"""How much more of rho is tried, dearest first."""


@dataclass(frozen=True, slots=True)
class PreparedCounts:
    """Discrete Gaussian noise of one variance, for any released items.

    *Guarantee.* One person moves at most ``moved`` of the released counts, by 1 each. The variance
    is fixed beforehand for that many, so that fewer items cost no more: ``loss`` is the loss of
    ``moved`` counts, whatever came out.
    """

    variance: Fraction
    moved: int
    max_items: int | None

    @property
    def loss(self) -> Loss:
        """The fixed cost."""
        return discrete_gaussian(self.variance, self.moved)

    @property
    def half_width(self) -> int:
        """Each count lies within this distance of its noisy one with 95% probability. Public."""
        return self._noise(1).half_width(1, CONFIDENCE)

    def release(
        self, histogram: Histogram, items: Sequence[Hashable], bits: BitSource | None = None
    ) -> tuple[int, ...]:
        """A noisy count for each item."""
        return self._noise(max(1, len(items))).release(histogram, items, bits)

    def _noise(self, released: int) -> NoisyCounts:
        """``NoisyCounts`` with the price at which its variance for so many items is ours."""
        touched = released if self.max_items is None else min(released, self.max_items)
        rho = touched / (2 * self.variance)
        return NoisyCounts(rho=rho, max_items=self.max_items)  # type: ignore[arg-type]  # exact


def with_counts(name: str, question: Question, share: float) -> tuple[Prepared, PreparedCounts]:
    """A selection at (1 − share)·(ε, δ), and counts for what the sum of both leaves of (ε, δ)."""
    if isinstance(share, bool) or not isinstance(share, float | int) or not 0 < share < 1:
        raise InvalidParameter(
            f"counts_share={share!r} must be above 0 and below 1; 0.25 is the default"
        )
    if question.delta == 0:
        raise InvalidParameter(
            "counts=True needs a delta above 0: their noise is Gaussian; pass delta=1e-6"
        )
    # A threshold may take all of its delta: what the counts need is kept back.
    part = down(1 - exact(share))
    less = replace(question, epsilon=question.epsilon * part, delta=question.delta * part)
    selection = prepare(name, less)
    most = question.k_bar if question.k == "auto" else question.length
    moved = most if question.max_items is None else min(most, question.max_items)

    target, delta = question.epsilon, question.delta
    spent = selection.mechanism.loss
    start = (share * target) ** 2 / 40
    rho = calibrate(lambda each: spent + zcdp(each), target, delta, start, 1e-3)
    # Known to be discrete Gaussian, the same noise costs less: a little more may be afforded.
    for more in (*MORE, 1.0) if rho > 0 else ():
        counts = PreparedCounts(moved / (2 * exact(more * rho)), moved, question.max_items)
        if (spent + counts.loss).epsilon(delta) <= target:
            return selection, counts
    raise InvalidParameter(
        f"epsilon={target} leaves nothing for counts; raise epsilon or counts_share"
    )
