"""What the tests of the one-shot mechanisms share."""

from fractions import Fraction

from hypothesis import strategies as st

from topsecret.counts.histogram import Histogram
from topsecret.mechanisms import OneshotExponential, OneshotLaplace

TIED = {"d": 3, "b": 2, "c": 2, "a": 0}
COUNTS = st.lists(st.integers(0, 6), min_size=1, max_size=4)
KINDS = [OneshotExponential, OneshotLaplace]


def histogram(counts=TIED):
    return Histogram.of(counts, domain=tuple(counts))


def with_scale(kind, k, scale, m=4):
    """The mechanism whose noise has this scale on a domain of m items."""
    shifts = k if kind is OneshotExponential else min(k, m - k) or 1
    return kind(k=k, epsilon=shifts / Fraction(scale))
