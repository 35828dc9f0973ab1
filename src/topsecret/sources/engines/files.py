"""Event files: which formats there are, what their columns are called, how they are scanned.

A file's format and its column names are its schema and count as public; everything else in it
is secret. The schema is the header line of a CSV or TSV file, the footer of a Parquet file. JSON
lines name their own fields, so that none of them is the schema: a field that none has is missing.

Nothing is guessed from the rows: text formats are read as text, with one fixed dialect
(RFC 4180: commas or tabs, double quotes, a header line, UTF-8, an empty field is no value).
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlglot import exp

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    NotInSchema,
    SourceError,
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
from topsecret.sources.sql.dialects import MARK
from topsecret.sources.sql.statements import call, named, record
from topsecret.sources.sql.statements import column as column_of

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
    called: str = ""
    """The name of what this is a copy of."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.called or self.path.name

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
        if form.delimiter is not None and kind not in ("CSV", "TSV"):
            raise InvalidParameter(
                f"delimiter={form.delimiter!r} is for CSV files; {path.name} is {kind}"
            )
        if form.header is not None and kind == "Parquet":
            raise InvalidParameter(f"header={form.header!r} is for text; {path.name} is {kind}")
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
        """Make the copy, if one is needed, unless a row cannot be copied; rows are read."""
        return readable.path == self.path or copied(
            self.path, self.compression, self.encoding, readable.path
        )

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

    def scan(
        self,
        wanted: Sequence[str],
        columns: Iterable[str],
        more: Sequence[EventFile] = (),
        person: str | None = None,
    ) -> exp.Table:
        """The table function that reads this file, all text in the text formats.

        ``more`` files of the same kind are read after it. Of JSON lines the column of
        the ``person`` is left as JSON.
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
                columns=record({name: "JSON" if name == person else "VARCHAR" for name in wanted}),
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
        """The first record. The rows after it are persons': whatever they hold, they fail nothing.

        In UTF-8 they are not even decoded.
        """
        utf8 = self.encoding == UTF8  # then a character for each byte
        decoder = codecs.getincrementaldecoder("latin-1" if utf8 else self.encoding)("replace")
        header, decoded = None, False
        with suppress(csv.Error, UnicodeError):  # UTF-16 without its first mark
            text = io.StringIO(decoder.decode(start).removeprefix("\ufeff"), newline="")
            decoded = True
            header = next(csv.reader(text, delimiter=self.delimiter, strict=True), None)
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


def check_types(files: Sequence[EventFile], found: Sequence[Mapping[str, str]]) -> None:
    """Parquet files that are read together hold the same types in the columns that are read.

    DuckDB would cast the later files to the first one's types: 1.5 and 1.75 of a column of floats
    would become one whole number, and a value too large for it would fail the query.
    """
    for file, types in zip(files[1:], found[1:], strict=True):
        for name, type_name in found[0].items():
            if types.get(name) != type_name:
                held = types.get(name, "missing")
                raise DataIndependentFailure(
                    f"column {name!r} is {type_name} in {files[0].name} and {held} in "
                    f"{file.name}; files that are read together need the same types"
                )


def exact_persons(scan: exp.Table, wanted: Sequence[str], person: str) -> exp.Expression:
    """JSON lines whose persons were read as JSON: text is itself, all else is kept apart from it.

    1 and "1" are two persons. A number with a fraction or an exponent is none: DuckDB reads it as
    a float, and two of them may become one.
    """
    value = column_of(person, "lines")
    written = exp.cast(value.copy(), exp.DataType.Type.VARCHAR)
    text = exp.Anonymous(
        this="JSON_EXTRACT_STRING", expressions=[value.copy(), exp.Literal.string("$")]
    )
    whole = exp.RegexpLike(this=written.copy(), expression=exp.Literal.string("^-?[0-9]+$"))
    marks = exp.Anonymous(this="STARTS_WITH", expressions=[text.copy(), exp.Literal.string(MARK)])

    def is_a(name: str) -> exp.Expression:
        held = exp.Anonymous(this="JSON_TYPE", expressions=[value.copy()])
        return exp.EQ(this=held, expression=exp.Literal.string(name))

    def marked(name: str, shown: exp.Expression) -> exp.Expression:
        mark = exp.Literal.string(f"{MARK}{name}:")
        return exp.DPipe(this=mark, expression=shown.copy(), safe=False)

    kept = (
        exp.case()
        .when(exp.and_(is_a("VARCHAR"), marks), marked("text", text))
        .when(is_a("VARCHAR"), text)
        .when(whole, marked("number", written))
        .when(is_a("BOOLEAN"), marked("boolean", written))
    )
    shown = [named(kept if n == person else column_of(n, "lines"), n) for n in wanted]
    lines: Any = exp.alias_(scan, "lines", table=True, quoted=True)
    return exp.select(*shown).from_(lines).subquery()


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
