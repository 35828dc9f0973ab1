"""Event files: which formats there are, what their columns are called, how they are scanned.

A file's format and its column names are its schema and count as public; everything else in it
is secret. The schema is the header line of a CSV or TSV file, the keys of the first line of a
JSON lines file, the footer of a Parquet file.

Nothing is guessed from the rows: text formats are read as text, with one fixed dialect
(RFC 4180: commas or tabs, double quotes, a header line, UTF-8, an empty field is no value).
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from sqlglot import exp

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    NotInSchema,
    SourceError,
    UnknownColumn,
)
from topsecret.sources.file_form import (
    COMPRESSIONS,
    STANDARD_INPUT,
    UTF8,
    File,
    Spool,
    copied,
    open_bytes,
    unpacking_errors,
)
from topsecret.sources.fingerprints import Fingerprint, digest, file_version
from topsecret.sources.sql.statements import call, record

FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".json-lines": "JSON lines",  # as --format names it
    ".json": "JSON lines",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".parquet": "Parquet",
}
REPAIR = {
    "CSV": "every row needs as many fields as the header, closed quotes and UTF-8 text "
    "(another encoding: --encoding latin-1)",
    "TSV": "every row needs as many fields as the header, closed quotes and UTF-8 text "
    "(another encoding: --encoding latin-1)",
    "JSON lines": "every line must be one JSON object in UTF-8 (from a JSON array: jq -c '.[]')",
    "Parquet": "write it again, it may be cut short or not be Parquet at all",
}
SUFFIXES = [suffix for suffix in FORMATS if suffix != ".json-lines"]
LONGEST_HEADER = 1 << 20
LONGEST_LINE = 1 << 24  # DuckDB's own limit for one JSON object


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file with one row per event, found and readable, of a known format."""

    path: Path
    format: str
    compression: str = "none"
    delimiter: str = ","
    encoding: str = UTF8
    header: tuple[str, ...] | None = None
    """The names of the columns, where no line of the file holds them."""
    standard_input: bool = False

    @classmethod
    def at(cls, given: str | os.PathLike[str], form: File | None = None) -> EventFile:
        """Check the path: it exists, is a file, may be read, and its format is known."""
        form = form or File(given)
        if os.fspath(given) == STANDARD_INPUT:
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
        kind = FORMATS.get(f".{form.format}" if form.format else "".join(suffix))
        if kind is None or (compression != "none" and kind == "Parquet"):
            raise DataIndependentFailure(
                f"{given} has no known suffix ({', '.join(SUFFIXES)}, text formats also with .gz "
                "or .zst); say what it is, for example --format csv (in Python: "
                "File(path, format='csv'))"
            )
        return cls._of(path, form, kind, compression)

    @classmethod
    def _of(
        cls, path: Path, form: File, kind: str, compression: str, standard_input: bool = False
    ) -> EventFile:
        for name, value in (("delimiter", form.delimiter), ("header", form.header)):
            if value is not None and kind not in ("CSV", "TSV"):
                raise InvalidParameter(f"{name}={value!r} is for CSV files; {path.name} is {kind}")
        if form.encoding is not None and kind == "Parquet":
            raise InvalidParameter(f"encoding={form.encoding!r} is for text; {path.name} is {kind}")
        delimiter = form.delimiter or ("\t" if kind == "TSV" else ",")
        header = None if form.header is None else tuple(form.header)
        return cls(
            path, kind, compression, delimiter, form.encoding or UTF8, header, standard_input
        )

    def malformed(self) -> SourceError:
        """The error for a file that breaks its format. It says nothing of where or how."""
        packed = {"gzip": "gzipped ", "zstd": "zstd-packed "}.get(self.compression, "")
        repair = REPAIR[self.format]
        if self.encoding != UTF8:
            repair = repair.replace("UTF-8", self.encoding).partition(" (another")[0]
        return SourceError(
            f"{self.path.name} is not well-formed {packed}{self.format}: {repair}. The owner of "
            "the file finds the row with topsecret doctor FILE"
        )

    def readable(self, spool: Spool) -> EventFile:
        """The same, or the copy of it that DuckDB can read once :meth:`copy_to` has made it."""
        marked = self.format == "JSON lines" and not self.standard_input and self._is_marked()
        if self.encoding == UTF8 and not self.standard_input and not marked:
            return self
        place = spool.place()
        return replace(self, path=place, compression="none", encoding=UTF8, standard_input=False)

    def copy_to(self, readable: EventFile) -> None:
        """Make the copy; its rows are read."""
        if readable.path == self.path:
            return
        path = None if self.standard_input else self.path
        encoding = None if self.format == "Parquet" else self.encoding
        if not copied(path, self.compression, encoding, readable.path):
            raise self.malformed()

    def _is_marked(self) -> bool:
        """Whether it begins with a byte-order mark, which is no part of JSON."""
        with suppress(*unpacking_errors()), open_bytes(self.path, self.compression) as file:
            return file.read(3) == codecs.BOM_UTF8
        return False

    def text_columns(self) -> tuple[str, ...] | None:
        """The column names of a text format; None when a JSON lines file has no line at all."""
        if self.header is not None:
            return self.header
        first = self._first_lines()
        return self._keys(first) if self.format == "JSON lines" else self._header(first)

    def scan(
        self, wanted: Sequence[str], columns: Iterable[str], more: Sequence[EventFile] = ()
    ) -> exp.Table:
        """The table function that reads this file, all text in the text formats.

        ``more`` files of the same kind are read after it.
        """
        path: str | list[str] = literal_pattern(str(self.path))
        if more:
            path = [literal_pattern(str(file.path)) for file in (self, *more)]
        if self.format == "Parquet":
            return call("READ_PARQUET", path, hive_partitioning=exp.false())
        packing = "uncompressed" if self.compression == "none" else self.compression
        compression = exp.Literal.string(packing)
        if self.format == "JSON lines":
            return call(
                "READ_JSON",
                path,
                format=exp.Literal.string("newline_delimited"),
                compression=compression,
                columns=record(dict.fromkeys(wanted, "VARCHAR")),
            )
        return call(
            "READ_CSV",
            path,
            auto_detect=exp.false(),
            header=exp.true() if self.header is None else exp.false(),
            delim=exp.Literal.string(self.delimiter),
            quote=exp.Literal.string('"'),
            escape=exp.Literal.string('"'),
            compression=compression,
            columns=record(dict.fromkeys(_distinct(wanted, columns), "VARCHAR")),
        )

    def _first_lines(self) -> bytes:
        """The start of the file, long enough for a header; of JSON lines the first line alone."""
        start = None
        try:
            with open_bytes(self.path, self.compression) as file:
                if self.format == "JSON lines":
                    start = file.readline(LONGEST_LINE)
                    while start.isspace():
                        start = file.readline(LONGEST_LINE)
                else:
                    start = file.read(LONGEST_HEADER)
            return start.removeprefix(codecs.BOM_UTF8)
        except unpacking_errors():
            pass
        if start is None and self.compression == "none":
            raise SourceError(f"{self.path.name} cannot be read; check the disk and permissions")
        raise self.malformed()

    def _header(self, start: bytes) -> tuple[str, ...]:
        """The first record. The rows after it are persons': they are not even decoded."""
        try:
            rows = csv.reader(
                io.StringIO(start.decode("latin-1"), newline=""),  # a character for each byte
                delimiter=self.delimiter,
                strict=True,
            )
            header = next(rows, None)
        except csv.Error:
            header = None
        if not header:
            raise SourceError(
                f"{self.path.name} has no header line; its first line must name the columns"
            )
        with suppress(ValueError):
            return tuple(name.encode("latin-1").decode() for name in header)
        raise self.malformed()  # outside: a decoder's error carries the bytes

    def _keys(self, line: bytes) -> tuple[str, ...] | None:
        if not line.strip():
            return None
        try:
            first = json.loads(line.decode())
        except (ValueError, RecursionError):
            first = None
        if not isinstance(first, dict):
            raise self.malformed()
        return tuple(first)


def files_at(source: str | os.PathLike[str] | File) -> tuple[EventFile, ...]:
    """The file of this path, or all files that match the pattern, in the order of their names.

    A path that exists is taken as it is, whatever characters it holds.
    """
    form = source if isinstance(source, File) else File(source)
    given = form.path
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
    def readable(self) -> tuple[EventFile, ...]:
        """As DuckDB can read them, once they are ``copied``."""
        return tuple(file.readable(self._spool) for file in self.found)

    @cached_property
    def copied(self) -> tuple[EventFile, ...]:
        """The same, made: rows are read, so the question is paid for."""
        for found, readable in zip(self.found, self.readable, strict=True):
            found.copy_to(readable)
        return self.readable


def common_columns(files: Sequence[EventFile]) -> tuple[str, ...] | None:
    """The columns of text files that are read together: their headers must be the same."""
    first = files[0].text_columns()
    if files[0].format == "JSON lines":  # each line names its own fields
        return next((c for c in (file.text_columns() for file in files) if c is not None), None)
    for file in files[1:]:
        if file.text_columns() != first:
            raise SourceError(
                f"{file.path.name} has another header than {files[0].path.name}; "
                "files that are read together need the same columns in the same order"
            )
    return first


def check_columns(file: EventFile, wanted: Sequence[str], columns: Sequence[str]) -> None:
    """Every wanted column is there, once."""
    name = file.path.name
    for column in wanted:
        if column not in columns:
            # The keys of JSON lines are read from a person's row: that failure is not free.
            error = UnknownColumn if file.format == "JSON lines" else NotInSchema
            raise error(f"{name} has no column {column!r}; {_offer(file, wanted, columns)}")
        if columns.count(column) > 1:
            raise SourceError(f"{name} has more than one column {column!r}; rename one of them")


def _offer(file: EventFile, wanted: Sequence[str], columns: Sequence[str]) -> str:
    # The first line of a file without header is a person's row: show it only when a column that
    # was asked for proves it to be a header.
    if file.format in {"CSV", "TSV"} and not set(wanted) & set(columns):
        other = _other_delimiter(file, wanted, columns)
        if other is not None:
            shown = "tab" if other == "\t" else f"'{other}'"
            return (
                f"its columns are separated by another character: add --delimiter {shown} "
                f"(in Python: File(path, delimiter={other!r}))"
            )
        return (
            "its first line names none of the columns; check the names and the header line "
            "(for a file without one: --header user,place)"
        )
    shown = ", ".join(columns[:40]) + (", …" if len(columns) > 40 else "")
    return f"choose from: {shown}"


def _other_delimiter(file: EventFile, wanted: Sequence[str], columns: Sequence[str]) -> str | None:
    """The character that makes the first line name every wanted column: it is a header, then."""
    line = file.delimiter.join(columns)
    for other in ";\t|,:":
        with suppress(csv.Error):
            if set(wanted) <= set(next(csv.reader([line], delimiter=other), ())):
                return other
    return None


def literal_pattern(path: str) -> str:
    """The path as a pattern that matches itself alone: DuckDB expands ``*``, ``?`` and ``[``."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _distinct(wanted: Sequence[str], columns: Iterable[str]) -> list[str]:
    """All columns in order; those not wanted get names that clash with nothing."""
    taken = {column.casefold() for column in wanted}
    names = []
    for position, column in enumerate(columns, start=1):
        name = column
        if column not in wanted:
            name = f"unused {position}"
            while name.casefold() in taken:
                name += "_"
        names.append(name)
    return names
