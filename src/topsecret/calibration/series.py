"""A series, calibrated to its budget and drawn from its key, for whoever asks the questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from topsecret.counts.weights import UNIT
from topsecret.mechanisms.series_numbers import SeriesNumbers
from topsecret.mechanisms.series_values import SeriesNoise
from topsecret.noise.keyed_normals import KEY_BYTES

__all__ = ["UNIT", "SeriesNumbers", "drawn_values"]


def drawn_values(
    numbers: SeriesNumbers,
    key: bytes,
    nonces: Sequence[bytes],
    sums: Mapping[str, int],
    known: Sequence[str],
) -> dict[str, int]:
    """The values, in 1/1024, of all labels that are known after the last of these periods.

    ``nonces`` has the random number of every period until then, ``sums`` the present sums,
    ``known`` the labels that became known before. A function of these alone: asked again it is
    the same.
    """
    keys = [
        blake2b(nonce, key=key, digest_size=KEY_BYTES, person=b"period").digest()
        for nonce in nonces
    ]
    encoded = {label.encode("ascii"): total for label, total in sums.items()}
    before = {label.encode("ascii"): sums.get(label, 0) for label in known}
    found = SeriesNoise(numbers, keys).values(encoded, before)
    return {label.decode("ascii"): value for label, value in found.items()}
