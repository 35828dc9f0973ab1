"""The exact laws of a mechanism on all small histograms, tabulated once.

Every probability is a ball of python-flint. The table keeps two floats for each, one below and
one above, so that whole arrays of divergences can be bounded in float64; the balls themselves
are asked for again, at any precision, where the floats do not decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired, InvalidParameter, VerificationFailed
from topsecret.exact.rounding import down, precision, up
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.mechanisms.selection import Outcome
from topsecret.verify.neighbours import Cube, Indices, Neighbourhood, neighbours
from topsecret.verify.persons import PersonFamily, person_families
from topsecret.verify.report import described

Floats = NDArray[np.float64]

TABLE_BITS = 128

# A ball with this many accurate bits is within 2**-52 of its truncated float: WIDEN covers it
# 16 times over, which leaves room for the rounding of the product below.
_ACCURATE_BITS = 60
_WIDEN = 2.0**-48

TINY = 1e-250
"""Positive probabilities below this are bounded by 0 and by this: no subnormal float arises."""


@dataclass(frozen=True)
class Family:
    """All histograms of a cube, over a public domain or as observed items only."""

    cube: Cube
    public: bool

    def __len__(self) -> int:
        return len(self.cube)

    def histogram(self, index: int) -> Histogram:
        """The histogram of this place; without a public domain a zero is not observed."""
        names, counts = self.cube.names, self.cube.counts()[index]
        observed = {name: int(count) for name, count in zip(names, counts, strict=True) if count}
        return Histogram.of(observed, domain=names) if self.public else Histogram.of(observed)

    def show(self, index: int) -> dict[str, int]:
        """The counts of one histogram by name."""
        counts = self.cube.counts()[index]
        return dict(zip(self.cube.names, counts.tolist(), strict=True))

    def pairs(self, neighbourhood: Neighbourhood) -> tuple[Indices, Indices]:
        """All ordered pairs of neighbours."""
        return neighbours(self.cube, neighbourhood)


class Laws:
    """The laws of ``mechanism`` on every histogram of a family."""

    def __init__(self, mechanism: Mechanism, family: Family | PersonFamily) -> None:
        self.mechanism = mechanism
        self.family = family
        self.balls = lru_cache(maxsize=4096)(self._balls)
        tabulated = [self._balls(index, TABLE_BITS) for index in range(len(family))]
        names = {outcome: None for law in tabulated for outcome in law}
        self.outcomes: tuple[Outcome, ...] = tuple(names)
        columns = {outcome: column for column, outcome in enumerate(self.outcomes)}
        shape = (len(tabulated), len(columns))
        self.lower: Floats = np.zeros(shape)
        self.upper: Floats = np.zeros(shape)
        for row, law in enumerate(tabulated):
            for outcome, probability in law.items():
                bounds = _bounds(probability)
                self.lower[row, columns[outcome]], self.upper[row, columns[outcome]] = bounds

    def _balls(self, index: int, bits: int) -> Mapping[Outcome, arb]:
        with precision(bits):
            law = self.mechanism.probabilities(self.family.histogram(index))
            total = sum(law.values(), arb(0))
        if not total.contains(1):
            raise VerificationFailed(
                f"{described(self.mechanism)}: the probabilities on {self.family.show(index)} "
                f"add up to {total.str(10)}, not to 1"
            )
        return law


def families(
    mechanism: Mechanism, items: int, max_count: int, tall: int
) -> tuple[Family | PersonFamily, ...]:
    """The families that a check with at most ``items`` items runs over.

    Without a public domain an item of count 0 is not there, so one cube holds the histograms of
    all fewer items too. With one, each domain size is a family of its own, except those that
    the mechanism's public parameters rule out (k larger than the domain). Two items with counts
    up to ``tall`` reach above thresholds that small counts never pass.
    """
    public = needs_domain(mechanism)
    counted = getattr(mechanism, "counted", None)
    if counted is not None:
        persons = person_families(counted, public, items, max_count, tall)
        return tuple(family for family in persons if _accepts(mechanism, family))
    cubes = [Cube(size, max_count) for size in range(1 if public else items, items + 1)]
    if tall > max_count and items >= 2:
        cubes.append(Cube(2, tall))
    all_families = [Family(cube, public) for cube in cubes]
    accepted = tuple(family for family in all_families if _accepts(mechanism, family))
    if not accepted:
        raise InvalidParameter(
            f"{described(mechanism)} accepts no domain of at most {items} items; "
            "raise items or lower k"
        )
    return accepted


def _accepts(mechanism: Mechanism, family: Family | PersonFamily) -> bool:
    try:
        mechanism.probabilities(family.histogram(0))
    except InvalidParameter:
        return False
    return True


def needs_domain(mechanism: Mechanism) -> bool:
    """Whether the mechanism refuses a histogram without a public domain."""
    counted = getattr(mechanism, "counted", None)
    try:
        if counted is not None:
            mechanism.probabilities(counted({}, None))
            return False
        mechanism.probabilities(Histogram.of({}))
    except DomainRequired:
        return True
    return False


def _bounds(probability: arb) -> tuple[float, float]:
    middle = float(probability)
    if middle > TINY and probability.rel_accuracy_bits() >= _ACCURATE_BITS:
        return middle * (1 - _WIDEN), middle * (1 + _WIDEN)
    lower, upper = max(down(probability), 0.0), max(up(probability), 0.0)
    if lower < TINY:
        lower = 0.0
    return lower, upper if upper == 0.0 else max(upper, TINY)
