"""How many people a named label surely has: a lower bound from its noisy value.

>>> persons_at_least([102_400], 1, Fraction(7), Fraction(41))
(89,)

The value v of a named label is a Gaussian that was seen only because it exceeded T. The bound is
the S with P[V ≥ v | V > T] = α/R when the label's sum is S, R the number of labels that were named:
all R bounds hold together with probability 1 − α (docs/proofs/weighted-histogram.md). The largest
values are the luckiest, so that a bound with α alone would fail for the head of a list. A sum of
weights is at most the number of people, so the bound holds for people, too; no upper bound follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from topsecret.accounting.pairs import normal_below
from topsecret.counts.weights import UNIT
from topsecret.exact.rounding import ball, precision

ALPHA = Fraction(1, 20)
"""With this probability, at most, one of a release's bounds is too high."""


def persons_at_least(
    values: Sequence[int],
    labels: int,
    sigma: Fraction,
    threshold: Fraction | None,
    alpha: Fraction = ALPHA,
) -> tuple[int, ...]:
    """The bound of each value, best first, out of ``labels`` that were named. Post-processing."""

    def bound(place: int, least: int, above: int | None) -> int:
        lowest = Fraction(2 * values[place] - 1, 2 * UNIT)
        return _bound(lowest, above, least, labels, sigma, threshold, alpha)

    if not values:
        return ()
    # An observed label has a person; a label of a public domain may have none.
    found = [0] * len(values)
    found[0] = bound(0, 0 if threshold is None else 1, None)
    found[-1] = bound(-1, 0 if threshold is None else 1, found[0])
    # Bounds fall along the list: between two that are equal all are.
    parts = [(0, len(values) - 1)]
    while parts:
        first, last = parts.pop()
        middle = (first + last) // 2
        if found[first] == found[last]:
            found[first:last] = [found[first]] * (last - first)
        elif last - first > 1:
            found[middle] = bound(middle, found[last], found[first])
            parts += [(first, middle), (middle, last)]
    return tuple(found)


def _bound(
    value: Fraction,
    above: int | None,
    least: int,
    labels: int,
    sigma: Fraction,
    threshold: Fraction | None,
    alpha: Fraction,
) -> int:
    """The largest m that holds surely: a sum of m − 1 would show such a value too seldom.

    ``value`` is the lower end of what was rounded; ``above`` a bound of a larger value, ``least``
    one of a smaller value.
    """

    def surely(persons: int) -> bool:
        """P[V ≥ value | V > T] < α/R at a sum of people − 1, and hence at every smaller sum."""
        with precision(128):
            place = (value - (persons - 1)) / sigma
            chance = normal_below(-ball(place))
            if threshold is not None:
                chance /= normal_below(-ball((threshold - (persons - 1)) / sigma))
            return bool(chance < ball(alpha / labels))

    if not surely(least + 1):
        return least
    low = least + 1
    high = max(low + 1, int(value) + 2) if above is None else max(low, above) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if surely(middle):
            low = middle
        else:
            high = middle
    return low
