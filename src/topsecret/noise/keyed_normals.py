"""Standard normals that a secret key determines, one for each label: for noise that is used again.

The key feeds BLAKE2b as a keyed pseudorandom function, its output the exact sampler: the normal of
a label is Φ⁻¹ of an endless uniform whose digits are the function's. Whoever does not have the key
cannot tell them from fresh ones by any feasible computation; that is a weaker statement than the
one about the system's own randomness, and whoever uses this must say so.

>>> one, again = KeyedNormals(b"k" * 32), KeyedNormals(b"k" * 32)
>>> one.ball(b"tea", 64).mid() == again.ball(b"tea", 64).mid()
True
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from flint import arb

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import precision
from topsecret.noise.bits import Uniform
from topsecret.noise.distributions import GAUSSIAN
from topsecret.noise.enclosures import Bounds, arrival_bounds

KEY_BYTES = 32
_WORD = 64
_FIRST, _MORE = b"first", b"more"  # two functions of one key
_FAR = 1e300
"""Stands for a normal that 53 bits do not bound: reaching it would take more than 10^500 bits."""


class KeyedBits:
    """The bytes after a label's first word."""

    def __init__(self, key: bytes, label: bytes) -> None:
        self._key, self._label = key, label
        self._blocks, self._left = 0, b""

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        while len(self._left) < size:
            salt = self._blocks.to_bytes(16, "big")
            self._left += blake2b(self._label, key=self._key, salt=salt, person=_MORE).digest()
            self._blocks += 1
        taken, self._left = self._left[:size], self._left[size:]
        return taken


class KeyedNormals:
    """One standard normal for each label, the same for the same key. Secret."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise InvalidParameter(f"a key has {KEY_BYTES} bytes")
        self._key = key
        self._uniforms: dict[bytes, Uniform] = {}

    def __repr__(self) -> str:
        return "KeyedNormals()"

    def bounds(self, labels: Sequence[bytes]) -> Bounds:
        """Floats around the normals of many labels, from 53 bits of each."""
        drawn = b"".join([self._word(label) for label in labels])
        high = (np.frombuffer(drawn, dtype=">u8") >> np.uint64(11)).astype(np.float64)
        # Whole numbers of 53 bits: these floats and their division are exact.
        lower, upper = GAUSSIAN.bounds(*arrival_bounds(high * 2.0**-53, (high + 1.0) * 2.0**-53))
        return np.maximum(lower, -_FAR), np.minimum(upper, _FAR)

    def ball(self, label: bytes, bits: int) -> arb:
        """A ball around the normal of one label that shrinks as ``bits`` grows."""
        if label not in self._uniforms:
            prefix = int.from_bytes(self._word(label), "big")
            self._uniforms[label] = Uniform(KeyedBits(self._key, label), prefix, _WORD)
        with precision(bits + 32):
            return GAUSSIAN.ball(-self._uniforms[label].complement(bits).log())

    def _word(self, label: bytes) -> bytes:
        return blake2b(label, key=self._key, digest_size=_WORD // 8, person=_FIRST).digest()
