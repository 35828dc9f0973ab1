"""Event files: which formats there are, what their columns are called, what their bytes are.

A file's format and its column names are its schema and count as public; everything else in it
is secret. The schema is the header line of a CSV or TSV file, the footer of a Parquet file. JSON
lines name their own fields, so that none of them is the schema: a field that none has is missing.

Nothing is guessed from the rows: text formats are read as text, with one fixed dialect
(RFC 4180: commas or tabs, double quotes, a header line, UTF-8, an empty field is no value).

What DuckDB cannot read as it stands (standard input, other encodings, JSON lines that begin with a
byte-order mark) is copied as UTF-8 into a file that only this user may read, once the question is
paid for, and removed with the source.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import glob
import gzip
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    MissingExtra,
    NotInSchema,
    SourceError,
)
from topsecret.sources.file_form import STANDARD_INPUT, File

FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".json-lines": "JSON lines",  # as --format names it
    ".json": "JSON lines",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".parquet": "Parquet",
}
_FIELDS = "a line of its own, as many fields as the header, closed quotes and UTF-8 text"
_OTHERS = "values over several lines: --multiline; another encoding: --encoding latin-1"
_TABLE = f"every row needs {_FIELDS} ({_OTHERS})"
REPAIR = dict.fromkeys(("CSV", "TSV"), _TABLE) | {
    "JSON lines": "every line must be one JSON object in UTF-8 (from a JSON array: jq -c '.[]')",
    "Parquet": "write it again, it may be cut short or not be Parquet at all",
}
SUFFIXES = [suffix for suffix in FORMATS if suffix != ".json-lines"]
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
UTF8 = "utf-8"
_OPTIONS = dict.fromkeys(("delimiter", "multiline"), "CSV files")
_OPTIONS |= dict.fromkeys(("header", "encoding"), "text")
LONGEST_HEADER = 1 << 20


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file with one row per event, found and readable, of a known format.

    Parameters: ``path``: the file; ``format``: CSV, TSV, JSON lines or Parquet;
    ``compression``: the kind, by its ending; ``delimiter``: between values; ``encoding``: of text;
    ``standard_input``: whether it is that; ``multiline``: whether values may take several lines.
    """

    path: Path
    format: str
    compression: str = "none"
    delimiter: str = ","
    encoding: str = UTF8
    header: tuple[str, ...] | None = None
    """The names of the columns, where no line of the file holds them."""
    standard_input: bool = False
    multiline: bool = False
    called: str = ""
    """The name of what this is a copy of."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.called or self.path.name

    @classmethod
    def at(cls, given: str | os.PathLike[str], form: File | None = None) -> EventFile:
        """Check the path: it exists, is a file, may be read, and its format is known.

        Without a form it is read as its suffix says.
        """
        if os.fspath(given) == STANDARD_INPUT:
            form = form or File(given)  # which refuses it: no suffix names its format
            return cls._of(Path("standard input"), form, FORMATS[f".{form.format}"], "none", True)
        path = Path(given).expanduser()
        try:
            path = path.resolve()
            if not path.exists():
                raise DataIndependentFailure(f"{given} does not exist; check the path")
            if not path.is_file():
                raise DataIndependentFailure(f"{given} is not a file; name one file of events")
        except (OSError, ValueError) as error:  # too long, a NUL byte, a loop of links
            if isinstance(error, SourceError):
                raise
            raise DataIndependentFailure(
                f"{str(given)!r} is not a usable path; check the path"
            ) from None
        if not os.access(path, os.R_OK):
            raise DataIndependentFailure(
                f"{given} may not be read; give yourself read permission (chmod +r)"
            )
        suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
        compression = COMPRESSIONS.get(suffixes[-1] if suffixes else "", "none")
        suffix = (suffixes if compression == "none" else suffixes[:-1])[-1:]
        kind = FORMATS.get(f".{form.format}" if form and form.format else "".join(suffix))
        if kind is None or (compression != "none" and kind == "Parquet"):
            raise DataIndependentFailure(
                f"{given} has no known suffix ({', '.join(SUFFIXES)}, text formats also with .gz "
                "or .zst); say what it is, for example --format csv (in Python: "
                "File(path, format='csv'))"
            )
        return cls._of(path, form, kind, compression)

    @classmethod
    def _of(
        cls,
        path: Path,
        form: File | None,
        kind: str,
        compression: str,
        standard_input: bool = False,
    ) -> EventFile:
        usual = "\t" if kind == "TSV" else ","
        if form is None:
            return cls(path, kind, compression, usual)
        for name, of in _OPTIONS.items():
            fits = kind in ("CSV", "TSV") or (of == "text" and kind != "Parquet")
            if not fits and (said := form.options.get(name)) is not None:
                raise InvalidParameter(f"{name}={said!r} is for {of}; {path.name} is {kind}")
        delimiter, encoding = form.delimiter or usual, form.encoding or UTF8
        header, several = None if form.header is None else tuple(form.header), form.multiline
        return cls(path, kind, compression, delimiter, encoding, header, standard_input, several)

    def malformed(self) -> SourceError:
        """The error for a file that breaks its format. It says nothing of where or how."""
        packed = {"gzip": "gzipped ", "zstd": "zstd-packed "}.get(self.compression, "")
        repair = REPAIR[self.format]
        if self.encoding != UTF8:
            repair = repair.replace("UTF-8", self.encoding).partition("; another")[0] + ")"
        return SourceError(
            f"{self.name} is not well-formed {packed}{self.format}: {repair}. The owner of "
            "the file finds the row with topsecret doctor FILE"
        )

    def arrived(self, spool: Spool) -> EventFile:
        """The same, or what standard input brought, byte by byte: no row can fail this."""
        if not self.standard_input:
            return self
        place = spool.place()
        if not copied(None, "none", None, place):
            raise self.malformed()
        return replace(self, path=place, compression="none", standard_input=False, called=self.name)

    def readable(self, spool: Spool) -> EventFile:
        """The same, or the copy of it that DuckDB can read once it is made."""
        if self.format == "Parquet" or (self.encoding == UTF8 and not self._is_marked()):
            return self
        copy = spool.place()
        return replace(self, path=copy, compression="none", encoding=UTF8, called=self.name)

    def is_copied_to(self, readable: EventFile) -> bool:
        """Make the copy, unless a row cannot be copied; rows are read."""
        return copied(self.path, self.compression, self.encoding, readable.path)

    def size(self, most: int) -> int:
        """Its bytes, unpacked, as far as they matter: beyond ``most`` some larger number."""
        unpacked = 0
        with suppress(*unpacking_errors()), open_bytes(self.path, self.compression) as file:
            while unpacked <= most and (more := len(file.read(1 << 20))):
                unpacked += more
        return unpacked

    def _is_marked(self) -> bool:
        """Whether it begins with a byte-order mark, which is no part of JSON."""
        if self.format != "JSON lines":
            return False
        with suppress(*unpacking_errors()), open_bytes(self.path, self.compression) as file:
            return file.read(3) == codecs.BOM_UTF8
        return False

    def text_columns(self) -> tuple[str, ...] | None:
        """The column names of a text format; of JSON lines those that were declared, if any.

        Each of their lines names its own fields: which ones the first has, one person decides.
        """
        if self.header is not None or self.format in ("JSON lines", "Parquet"):
            return self.header
        return self._header(self._first_lines())

    def _first_lines(self) -> bytes:
        """The start of the file, long enough for a header."""
        start = None
        try:
            with open_bytes(self.path, self.compression) as file:
                start = file.read(LONGEST_HEADER)
            return start.removeprefix(codecs.BOM_UTF8)
        except unpacking_errors():
            pass
        if start is None and self.compression == "none":
            raise SourceError(f"{self.name} cannot be read; check the disk and permissions")
        raise self.malformed()

    def _header(self, start: bytes) -> tuple[str, ...]:
        """The first record. The rows after it are people's: nothing in them can fail it."""
        utf8 = self.encoding == UTF8  # then a character for each byte: rows are not even decoded
        decoder = codecs.getincrementaldecoder("latin-1" if utf8 else self.encoding)("replace")
        header, decoded = None, False
        with suppress(csv.Error, UnicodeError):  # UTF-16 without its first mark
            text = decoder.decode(start).removeprefix("\ufeff")
            decoded = True
            header = _first_record(text, self.delimiter, several_lines=self.multiline)
        if not decoded:
            raise self.malformed()
        if not header:
            raise SourceError(
                f"{self.name} has no header line; its first line must name the columns"
            )
        if not utf8:
            return tuple(header)
        with suppress(ValueError):
            return tuple(name.encode("latin-1").decode() for name in header)
        raise self.malformed()  # outside: a decoder's error carries the bytes


def _first_record(text: str, delimiter: str, *, several_lines: bool) -> list[str] | None:
    """The fields of the first record, if a quote behind a space changes nothing about its end.

    DuckDB opens a quote there, and Python's reader does not: such a quote could take in rows. What
    is not closed, or stands within a field, is a ``csv.Error``.
    """
    lines = list(io.StringIO(text, newline=""))
    if not several_lines:  # an open quote takes in no row
        lines = re.split("[\r\n]", text, maxsplit=1)[:1]
    spaced, plain = (
        csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=skips)
        for skips in (delimiter != " ", False)
    )
    next(spaced, None)
    header = next(plain, None)
    return header if spaced.line_num == plain.line_num else None


def files_at(source: str | os.PathLike[str] | File) -> tuple[EventFile, ...]:
    """The file of this path, or all files that match the pattern, in the order of their names.

    A path that exists is taken as it is, whatever characters it holds.
    """
    form, given = (source, source.path) if isinstance(source, File) else (None, source)
    text = os.path.expanduser(os.fspath(given))
    if "\0" in text or not glob.has_magic(text) or os.path.lexists(text):
        return (EventFile.at(given, form),)
    matching = sorted(path for path in glob.glob(text, recursive=True) if os.path.isfile(path))
    if not matching:
        raise DataIndependentFailure(f"{given} matches no file; check the pattern")
    files = tuple(EventFile.at(path, form) for path in matching)
    if len({(file.format, file.compression) for file in files}) > 1:
        raise DataIndependentFailure(
            f"{given} matches files of several formats; choose those of one suffix"
        )
    return files


def common_columns(files: Sequence[EventFile]) -> tuple[str, ...] | None:
    """The columns of text files that are read together: their headers must be the same."""
    first = files[0].text_columns()
    for file in files[1:]:
        if file.text_columns() != first:
            raise SourceError(
                f"{file.name} has another header than {files[0].name}; "
                "files that are read together need the same columns in the same order"
            )
    return first


def check_columns(file: EventFile, wanted: Sequence[str], columns: Sequence[str]) -> None:
    """Every wanted column is there, once."""
    name = file.name
    for column in wanted:
        if column not in columns:
            raise NotInSchema(f"{name} has no column {column!r}; {_offer(file, columns)}")
        if columns.count(column) > 1:
            raise SourceError(f"{name} has more than one column {column!r}; rename one of them")


def _offer(file: EventFile, columns: Sequence[str]) -> str:
    # The first line of a text file may be a person's row: of a CSV without header, of JSON lines
    # always. Whoever guesses a value in it would be told the rest, so it is never shown.
    if file.format != "Parquet":
        other = "','" if file.delimiter == ";" else "';'"
        return (
            "its first line must name the columns; look at it with: head -n 1 "
            f"{shlex.quote(file.name)} (another delimiter than {file.delimiter!r}: "
            f"--delimiter {other}; no such line: --header user,place)"
        )
    shown = ", ".join(columns[:40]) + (", …" if len(columns) > 40 else "")
    return f"choose from: {shown}"


def file_version(*paths: Path) -> str:
    """Changes when a file is written anew: when, not what, so it is public."""
    try:
        return " ".join(str(path.stat().st_mtime_ns) for path in paths)
    except OSError:
        return ""  # the missing file is found, and named, when it is read


def literal_pattern(path: str) -> str:
    """The path as a pattern that matches itself alone: DuckDB expands ``*``, ``?`` and ``[``."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def open_bytes(path: Path, compression: str) -> IO[bytes]:
    """The file's bytes, unpacked."""
    if compression == "gzip":
        return cast(IO[bytes], gzip.open(path))
    if compression != "zstd":
        return path.open("rb")
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(
            "a .zst file needs zstandard: pip install '.[zstd]' in the checkout"
        ) from None
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
