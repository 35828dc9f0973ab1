"""What a caller named, and what DuckDB reads in its place."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from topsecret.sources.engines.files import EventFile, common_columns, files_at
from topsecret.sources.file_form import File, Spool
from topsecret.sources.fingerprints import Fingerprint, digest, file_version


class FilesToRead:
    """What a caller named: the files that were found, and what DuckDB reads in their place."""

    def __init__(self, source: str | os.PathLike[str] | File) -> None:
        self.form = source if isinstance(source, File) else File(source)
        self.found = files_at(self.form)
        self._spool = Spool()

    @property
    def name(self) -> str:
        """The file's name, or the pattern, without its directory."""
        several = len(self.found) > 1
        return Path(self.form.path).name if several else self.found[0].path.name

    @property
    def place(self) -> str:
        """The path, or the pattern."""
        return str(self.form.path if len(self.found) > 1 else self.found[0].path)

    @property
    def version(self) -> str:
        """Changes when a file is written anew."""
        return file_version(*(file.path for file in self.found))

    def fingerprint(self) -> Fingerprint:
        """Where the files are, how they are read, and when they were written."""
        paths = [str(file.path) for file in self.found]
        where = {"path": paths[0]} if len(paths) == 1 else {"files": digest(paths)}
        version = None if self.found[0].standard_input else self.version
        return {"kind": "file", **where, **self.form.options, "version": version}

    @cached_property
    def _arrived(self) -> tuple[EventFile, ...]:
        """The files, and what came on standard input as it came."""
        return tuple(file.arrived(self._spool) for file in self.found)

    @cached_property
    def header(self) -> tuple[str, ...] | None:
        """The columns of text files, by their first lines alone; None of JSON lines."""
        return common_columns(self._arrived)

    @cached_property
    def readable(self) -> tuple[EventFile, ...]:
        """As DuckDB can read them, once they are ``copied``."""
        return tuple(file.readable(self._spool) for file in self._arrived)

    @cached_property
    def copied(self) -> tuple[EventFile, ...]:
        """The same, made: rows are read, so the question is paid for."""
        for found, file, readable in zip(self.found, self._arrived, self.readable, strict=True):
            if not file.is_copied_to(readable):
                raise found.malformed()
        return self.readable
