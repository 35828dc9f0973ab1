"""The files that the operator lets owners register: single ones, or a folder of partitions.

A folder is named by a pattern, ``visits/**/*.parquet``: its files of one suffix, at any depth.
Links that lead out of the folders, or anywhere inside a partitioned one, do not count.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from topsecret.errors import DataIndependentFailure, InvalidParameter

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
        with suppress(OSError):
            inside = path.resolve() == path and (path.is_dir() if suffix else path.is_file())
        if not inside or not any(path.is_relative_to(folder) for folder in self._folders):
            raise DataIndependentFailure(
                "the file is not there any more, is a link by now, or is in no folder that the "
                "service was started with; put it back, or start the service with its folder"
            )
        if suffix:
            _check_partitions(source)


def _check_partitions(source: str) -> None:
    """No file of a folder is reached by a link, and they are not without number."""
    for number, name in enumerate(_matching(source), 1):
        if number > MOST_PARTITIONS:
            raise DataIndependentFailure(
                f"the folder has more than {MOST_PARTITIONS:,} files; join some of them"
            )
        path = Path(name)
        if path.resolve() != path:
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


def may_overlap(one: str, other: str) -> bool:
    """Whether two of them may hold the same events."""
    parts = [_split(each) for each in (one, other)]
    paths = [Path(_literal(name) if suffix else name) for name, suffix in parts]
    with suppress(OSError):
        if paths[0].samefile(paths[1]):
            return True
    inside = [
        suffix and (path == place or path in place.parents)
        for (_, suffix), path, place in zip(parts, paths, paths[::-1], strict=True)
    ]
    return one == other or any(inside)


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
