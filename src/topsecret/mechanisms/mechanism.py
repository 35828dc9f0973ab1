"""What every mechanism offers: one protocol, no base class.

The constructor takes public parameters and checks them; the methods take the secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from flint import arb

from topsecret.accounting import Loss
from topsecret.counts.histogram import Histogram
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource


@runtime_checkable
class Mechanism(Protocol):
    """A private selection: a pure function of a histogram and random bits."""

    def __hash__(self) -> int:
        """Public parameters tell one from another."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether the order of the released items is part of the answer."""
        ...

    @property
    def loss(self) -> Loss:
        """What one answer costs, from the public parameters alone."""
        ...

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw one answer; ``bits`` defaults to the operating system's cryptographic source."""
        ...

    def probabilities(self, histogram: Histogram) -> Mapping[Outcome, arb]:
        """The exact law of the answer on a small histogram, as balls."""
        ...

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the answer on a small histogram, each number the nearest float."""
        ...
