"""Where a file breaks its format, for its owner: what this finds is secret."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator
from typing import IO

from topsecret.sources.engines.files import EventFile, files_at, open_bytes, unpacking_errors
from topsecret.sources.file_form import File

SECRET = (
    "SECRET: this report quotes rows of {}. It is for the owner of the data alone: "
    "keep it out of logs, tickets and mails."
)
MOST = 20
"""How many faults are shown."""


def examine(form: File) -> Iterator[tuple[str, int, str]]:
    """The name of the file, the line and what is wrong with it, fault by fault."""
    for file in files_at(form):
        try:
            with open_bytes(file.path, file.compression) as raw:
                for line, what in _faults(file, raw):
                    yield file.path.name, line, what
        except unpacking_errors():
            yield file.path.name, 0, "cannot be read to its end: it is damaged or cut short"


def _faults(file: EventFile, raw: IO[bytes]) -> Iterator[tuple[int, str]]:
    if file.format == "Parquet":
        start, _ = raw.read(4), raw.seek(0)
        if start != b"PAR1":
            yield 1, f"begins with {start!r}, not with PAR1: it is no Parquet file"
        return
    # What is not in the encoding becomes a mark that no other text holds.
    codecs.register_error("topsecret-mark", lambda error: ("\ufffd\udcff", _end(error)))
    encoding = "utf-8-sig" if file.encoding == "utf-8" else file.encoding
    text = io.TextIOWrapper(raw, encoding, errors="topsecret-mark", newline="")
    lines = _decoded(text, file.encoding)
    yield from _objects(lines) if file.format == "JSON lines" else _rows(file, lines)


def _end(error: UnicodeError) -> int:
    return error.end if isinstance(error, UnicodeDecodeError) else 0


def _decoded(text: IO[str], encoding: str) -> Iterator[tuple[str, str | None]]:
    """The lines, and what is wrong with their bytes."""
    for line in text:
        wrong = None
        if "\ufffd\udcff" in line:
            wrong = f"is not {encoding}: {_quoted(line.replace(chr(0xDCFF), ''))}"
        yield line, wrong


def _objects(lines: Iterator[tuple[str, str | None]]) -> Iterator[tuple[int, str]]:
    for number, (line, wrong) in enumerate(lines, start=1):
        if wrong is None and line.strip():
            try:
                one = isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                one = False
            wrong = None if one else f"is not one JSON object: {_quoted(line)}"
        if wrong is not None:
            yield number, wrong


def _rows(file: EventFile, lines: Iterator[tuple[str, str | None]]) -> Iterator[tuple[int, str]]:
    wrongs: list[tuple[int, str]] = []

    def sound() -> Iterator[str]:
        for number, (line, wrong) in enumerate(lines, start=1):
            if wrong is not None:
                wrongs.append((number, wrong))
            yield line

    skips = file.delimiter != " "  # DuckDB opens a quote behind a space, too
    rows = csv.reader(sound(), delimiter=file.delimiter, strict=True, skipinitialspace=skips)
    width = None if file.header is None else len(file.header)
    while True:
        begins = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error:
            yield begins, "has a quote that does not end, or stands inside a field"
            continue
        yield from wrongs
        wrongs.clear()
        if row is None:
            return
        width = len(row) if width is None else width
        if not file.multiline and any("\n" in field or "\r" in field for field in row):
            start = _quoted(file.delimiter.join(row))
            yield begins, f"has a value over several lines (allowed by --multiline): {start}"
        if row and len(row) != width:
            start = _quoted(file.delimiter.join(row))
            yield begins, f"has {len(row)} fields, and the header {width}: {start}"


def _quoted(line: str) -> str:
    return repr(line.rstrip("\r\n")[:60])
