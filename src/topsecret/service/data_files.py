"""The files that the operator lets owners register: single ones, or a folder of partitions.

A folder is named by a pattern, ``visits/**/*.parquet``: its files of one suffix, at any depth.
Links that lead out of the folders, or anywhere inside a partitioned one, do not count.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from topsecret.errors import DataIndependentFailure, InvalidParameter, SourceError

FORMS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
SUFFIXES = (*FORMS, *(f"{form}.gz" for form in FORMS))
MOST_LISTED = 500
MOST_PARTITIONS = 10_000


class DataFiles:
    """What is in the folders of ``--files``."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = tuple(folder.resolve() for folder in folders)

    def listed(self) -> list[str]:
        """What may be registered, by paths relative to their folders."""
        found: set[str] = set()
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                if path.name.endswith(SUFFIXES) and path.is_file():
                    inside = path.relative_to(folder)
                    found.add(str(inside))
                    if len(inside.parts) > 1:
                        found.add(f"{inside.parts[0]}/**/*{_suffix(path.name)}")
                if len(found) >= MOST_LISTED:
                    break
        return sorted(found)

    def locate(self, file: str) -> str:
        """The file, or the pattern of all files of a folder, inside one of the folders."""
        name, suffix = _split(file)
        if name and "\0" not in name and len(name) < 1000:
            for folder in self._folders:
                with suppress(OSError):  # a name that is too long for the system
                    path = (folder / name).resolve()
                    if not path.is_relative_to(folder):
                        continue
                    if suffix and path.is_dir() and path != folder:
                        return f"{glob.escape(str(path))}/**/*{suffix}"
                    if not suffix and path.is_file():
                        return str(path)
        raise InvalidParameter("the data folders have no such file; choose one that is listed")

    def check(self, source: str) -> None:
        """It is where it was registered, in a folder that the service has today, without links."""
        name, suffix = _split(source)
        path, inside = Path(_literal(name) if suffix else name), False
        with suppress(OSError, RuntimeError):  # the latter of a link to itself
            inside = path.resolve() == path and (path.is_dir() if suffix else path.is_file())
        if not inside or not any(path.is_relative_to(folder) for folder in self._folders):
            raise DataIndependentFailure(
                "the file is not there any more, is a link by now, or is in no folder that the "
                "service was started with; put it back, or start the service with its folder"
            )
        if suffix:
            _check_partitions(source)

    def watched(self, source: str) -> Callable[[], None]:
        """A second look, right before a question's rows are read: they are as they were now.

        It raises a ``SourceError``. What comes into a folder since is not read.
        """
        before = _numbers(source)

        def check() -> None:
            failed = ""
            try:
                self.check(source)
            except DataIndependentFailure as error:
                failed = str(error)
            now = {} if failed else _numbers(source)
            if not failed and any(now.get(path) != one for path, one in before.items()):
                failed = "the file was written, or another put in its place"
            if failed:
                raise SourceError(f"while the question waited for an engine: {failed}")

        return check


def _numbers(source: str) -> dict[str, tuple[int, ...]]:
    """What tells the files of a source from others in their places."""
    names = islice(_matching(source), MOST_PARTITIONS) if _split(source)[1] else (source,)
    found = ((name, _looked_at(Path(name))) for name in names)
    return {
        name: (one.st_dev, one.st_ino, one.st_mtime_ns, one.st_size)
        for name, one in found
        if one is not None
    }


def _check_partitions(source: str) -> None:
    """No file of a folder is reached by a link, and they are not without number."""
    for number, name in enumerate(_matching(source), 1):
        if number > MOST_PARTITIONS:
            raise DataIndependentFailure(
                f"the folder has more than {MOST_PARTITIONS:,} files; join some of them"
            )
        path, real = Path(name), None
        with suppress(OSError, RuntimeError):
            real = path.resolve()
        if real != path:
            raise DataIndependentFailure(
                "the folder holds a link; put the files themselves there, or take it away"
            )


def _matching(source: str) -> Iterator[str]:
    with suppress(OSError):
        yield from glob.iglob(source, recursive=True)


def shown(source: str) -> str:
    """A file or a folder of partitions in the owner's words, without where it is."""
    name, suffix = _split(source)
    if not suffix:
        return source.rpartition("/")[2]
    return f"{_literal(name).rpartition('/')[2]}/**/*{suffix}"


class Extents(dict[str, "Extent"]):
    """What registered files are on disk, each looked at once."""

    def __missing__(self, source: str) -> Extent:
        return self.setdefault(source, Extent.of(source))


@dataclass(frozen=True, slots=True)
class Extent:
    """A file or a folder of partitions: where it is, and its files by the system's numbers."""

    path: Path
    folder: bool
    numbers: frozenset[tuple[int, int]]
    """Its own and, of a folder, those of files that have other names somewhere."""

    @classmethod
    def of(cls, source: str) -> Extent:
        """As it is now; what cannot be looked at has no numbers."""
        name, suffix = _split(source)
        path = Path(_literal(name) if suffix else name)
        found = [one for one in (_looked_at(path),) if one is not None]
        if suffix:
            inside = map(_looked_at, map(Path, islice(_matching(source), MOST_PARTITIONS)))
            found += [one for one in inside if one is not None and one.st_nlink > 1]
        return cls(path, bool(suffix), frozenset((one.st_dev, one.st_ino) for one in found))

    def may_overlap(self, other: Extent) -> bool:
        """Whether two of them may hold the same events."""
        return (
            self.path == other.path
            or bool(self.numbers & other.numbers)
            or (self.folder and self.path in other.path.parents)
            or (other.folder and other.path in self.path.parents)
        )


def _looked_at(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _split(file: str) -> tuple[str, str]:
    """The folder and the suffix of a pattern; a file's own name and nothing."""
    for suffix in SUFFIXES:
        if file.endswith(f"/**/*{suffix}"):
            return file.removesuffix(f"/**/*{suffix}"), suffix
    return file, ""


def _suffix(name: str) -> str:
    return max((one for one in SUFFIXES if name.endswith(one)), key=len)


def _literal(pattern: str) -> str:
    """What ``glob.escape`` was given."""
    for magic in "*?[":
        pattern = pattern.replace(f"[{magic}]", magic)
    return pattern
