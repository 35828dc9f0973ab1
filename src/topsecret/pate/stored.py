"""Votes in a ``.npz`` file, read query by query: memory does not grow with their number.

The file holds either ``votes`` (queries × teachers × labels, any value but 0 is a vote) or
``counts`` (queries × labels, whole numbers), as ``numpy.savez`` and ``savez_compressed`` write
them, and if wanted ``labels``, the labels' names. Shapes, types and names are public.
"""

from __future__ import annotations

import csv
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from topsecret.errors import InvalidParameter, SourceError

_FIX = "write it with numpy.savez(path, votes=...), queries × teachers × labels"
_BROKEN = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class StoredVotes:
    """A file of votes: what is public about it, and the stream of its queries."""

    path: Path
    kind: str
    """``"votes"`` or ``"counts"``."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    names: tuple[str, ...]
    """The labels' names; their numbers when the file has none."""

    @classmethod
    def at(cls, given: str | os.PathLike[str]) -> StoredVotes:
        """Look at the headers alone."""
        path = Path(given).expanduser()
        if not path.is_file():
            raise SourceError(f"{given} does not exist or is not a file; check the path")
        found: StoredVotes | None = None
        try:
            with zipfile.ZipFile(path) as archive:
                members = set(archive.namelist())
                kind = next((name for name in ("votes", "counts") if f"{name}.npy" in members), "")
                if kind:
                    with archive.open(f"{kind}.npy") as member:
                        shape, fortran, dtype = _header(member)
                    names: tuple[str, ...] = tuple(str(i) for i in range(shape[-1] if shape else 0))
                    if "labels.npy" in members:
                        with archive.open("labels.npy") as member:
                            stored = npy.read_array(member, allow_pickle=False)
                        names = tuple(str(name) for name in stored.ravel())
                    if not fortran and not dtype.hasobject:
                        found = cls(path, kind, shape, dtype, names)
        except _BROKEN:
            pass  # raised below, outside: a decoder's error may carry bytes of the file
        if found is None:
            raise SourceError(f"{path.name} holds no votes that can be streamed; {_FIX}")
        if len(found.shape) != (3 if found.kind == "votes" else 2):
            raise SourceError(f"{path.name} has {found.kind} of the shape {found.shape}; {_FIX}")
        if len(found.names) != found.shape[-1]:
            raise SourceError(
                f"{path.name} names {len(found.names)} labels for {found.shape[-1]}; name each once"
            )
        return found

    @property
    def queries(self) -> int:
        """How many queries the file holds."""
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """One matrix of teachers × labels, or one row of counts, per query."""
        size = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.kind}.npy") as member:
            _header(member)
            for _ in range(self.queries):
                row = None
                with suppress(*_BROKEN):
                    row = member.read(size)
                if row is None or len(row) != size:
                    raise SourceError(f"{self.path.name} is cut short or damaged; write it again")
                yield np.frombuffer(row, dtype=self.dtype).reshape(self.shape[1:])


def write_shares(
    path: str | os.PathLike[str],
    shares: Sequence[Sequence[float] | None],
    names: Sequence[str],
    deviation: float,
    epsilon: float,
    delta: float,
) -> None:
    """Released shares as ``.npz``, or as CSV text with the noise's deviation in the last column."""
    table = np.array([row for row in shares if row is not None], dtype=np.float64)
    failed = False
    try:
        if Path(path).suffix == ".npz":
            np.savez_compressed(
                path,
                shares=table.reshape(len(table), len(names)),
                labels=np.array(names, dtype=np.str_),
                noise_deviation=deviation,
                epsilon=epsilon,
                delta=delta,
            )
        else:
            with Path(path).open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(["query", *names, "noise_deviation"])
                for number, row in enumerate(table.tolist(), start=1):
                    writer.writerow([number, *row, deviation])
    except OSError:
        failed = True
    if failed:
        raise InvalidParameter(f"{path} cannot be written; check the folder and its permissions")


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(member)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(member)
    return tuple(shape), bool(fortran), dtype
