"""How a file is to be read, where its suffix does not say: public parameters, never guessed.

A delimiter or an encoding that was guessed from the rows could change with one person's row, and
with it how everybody else's rows are read.

>>> File("visits.txt", format="csv", delimiter=";", encoding="latin-1").options
{'format': 'csv', 'delimiter': ';', 'encoding': 'iso8859-1'}
>>> File("visits.csv", delimiter=";;")
Traceback (most recent call last):
topsecret.errors.InvalidParameter: delimiter=';;' must be one ASCII character, or tab

What DuckDB cannot read as it stands (standard input, other encodings, JSON lines that begin with a
byte-order mark) is copied as UTF-8 into a file that only this user may read, once the question is
paid for, and removed with the source.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import IO, Any, cast

from topsecret.errors import InvalidParameter, MissingExtra, SourceError

FORMATS = {"csv": "CSV", "tsv": "TSV", "json-lines": "JSON lines", "parquet": "Parquet"}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
STANDARD_INPUT = "-"
UTF8 = "utf-8"


@dataclass(frozen=True, slots=True)
class File:
    """A file, a pattern of files, or ``-`` for standard input, and how it is to be read.

    ``header`` names the columns of a CSV file that has no header line, or the fields of JSON lines.
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise InvalidParameter(f"format={self.format!r} must be one of {', '.join(FORMATS)}")
        if os.fspath(self.path) == STANDARD_INPUT and self.format is None:
            raise InvalidParameter(
                "standard input has no suffix that names its format; add --format csv "
                "(in Python: File('-', format='csv'))"
            )
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _delimiter(self.delimiter))
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.header is not None:
            names = () if isinstance(self.header, str) else tuple(self.header)
            if not names or not all(isinstance(name, str) and name for name in names):
                raise InvalidParameter(
                    f"header={self.header!r} must name every column, in the order of the file"
                )
            object.__setattr__(self, "header", names)

    @property
    def options(self) -> dict[str, Any]:
        """What was said, by name; nothing for what was not."""
        said = {
            "format": self.format,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "header": None if self.header is None else list(self.header),
        }
        return {name: value for name, value in said.items() if value is not None}


def _delimiter(given: str) -> str:
    character = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise InvalidParameter(f"delimiter={given!r} must be one ASCII character, or tab")
    return character


def _encoding(given: str) -> str:
    try:
        found = codecs.lookup(given)
        "".encode(found.name)  # a codec of bytes, such as base64, is no encoding of text
    except (LookupError, ValueError):
        raise InvalidParameter(
            f"encoding={given!r} is not known; write, say, latin-1, cp1252 or utf-16"
        ) from None
    return found.name


def open_bytes(path: Path, compression: str) -> IO[bytes]:
    """The file's bytes, unpacked."""
    if compression == "gzip":
        return cast(IO[bytes], gzip.open(path))
    if compression != "zstd":
        return path.open("rb")
    try:
        import zstandard
    except ImportError:
        raise MissingExtra("a .zst file needs zstandard: pip install 'topsecret[zstd]'") from None
    return io.BufferedReader(cast(io.RawIOBase, zstandard.open(path, "rb")))


def unpacking_errors() -> tuple[type[Exception], ...]:
    """What goes wrong where packed bytes are damaged."""
    found: list[type[Exception]] = [OSError, EOFError, ValueError, zlib.error]
    if (zstandard := sys.modules.get("zstandard")) is not None:
        found.append(zstandard.ZstdError)
    return tuple(found)


class Spool:
    """Where private copies go: a folder for this user alone, removed with its owner."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._number = 0

    def place(self) -> Path:
        """A path for one more copy."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="topsecret-")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._number += 1
        return Path(self._folder).resolve() / str(self._number)


def copied(path: Path | None, compression: str, encoding: str | None, place: Path) -> bool:
    """Copy into UTF-8, or as it is without an encoding; without a path, from standard input.

    False if the bytes are damaged or not in this encoding.
    """
    try:
        with contextlib.ExitStack() as stack:
            raw = (
                sys.stdin.buffer
                if path is None
                else stack.enter_context(open_bytes(path, compression))
            )
            if encoding is None:
                shutil.copyfileobj(raw, stack.enter_context(place.open("xb")), 1 << 20)
            else:
                # A byte-order mark is no part of the text.
                reader = codecs.getreader("utf-8-sig" if encoding == UTF8 else encoding)(raw)
                copy = stack.enter_context(place.open("x", encoding=UTF8, newline=""))
                shutil.copyfileobj(reader, copy, 1 << 20)
        return True
    except unpacking_errors() as error:  # a wrong encoding is a ValueError
        damaged = not isinstance(error, OSError) or isinstance(error, gzip.BadGzipFile)
    if damaged:
        return False
    raise SourceError(
        "the file could not be read or copied; check it, and the space in the temporary folder"
    )
