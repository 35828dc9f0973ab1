"""How a file is to be read, where its suffix does not say: public parameters, never guessed.

A delimiter or an encoding that was guessed from the rows could change with one person's row, and
with it how everybody else's rows are read.

>>> File("visits.txt", format="csv", delimiter=";", encoding="latin-1").options
{'format': 'csv', 'delimiter': ';', 'encoding': 'iso8859-1'}
>>> File("visits.csv", delimiter=";;")
Traceback (most recent call last):
topsecret.errors.InvalidParameter: delimiter=';;' must be one ASCII character, or tab
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from topsecret.errors import InvalidParameter

FORMATS = {"csv": "CSV", "tsv": "TSV", "json-lines": "JSON lines", "parquet": "Parquet"}
STANDARD_INPUT = "-"
_ESCAPES = {"hz", "idna", "punycode", "raw_unicode_escape", "unicode_escape", "utf_7"}
_ESCAPES |= {"mac_arabic", "mac_farsi"}
"""Encodings in which a line end or a quote is written in several ways."""


@dataclass(frozen=True, slots=True)
class File:
    """A file, a pattern of files, or ``-`` for standard input, and how it is to be read.

    ``header`` names the columns of a CSV file that has no header line, or the fields of JSON lines.
    """

    path: str | os.PathLike[str]
    """The file, a pattern such as ``visits/*.csv``, or ``-`` for standard input."""
    _: KW_ONLY
    format: str | None = None
    """csv, tsv, json-lines or parquet; by the name's ending unless given."""
    delimiter: str | None = None
    """What separates the values of a text file; by its format unless given."""
    encoding: str | None = None
    """How text is encoded; UTF-8 unless given."""
    header: Sequence[str] | None = None
    """The names of the columns, where no line of the file has them."""
    multiline: bool = False
    """Whether values of a CSV file may go on in the next line. Otherwise such a file is refused: a
    quote that one person's row leaves open would make other people's rows a part of it. With it,
    the guarantee rests on whoever wrote the file: quotes inside values must be doubled, and not
    marked by backslashes, as Spark does unless told otherwise."""

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
            "multiline": self.multiline or None,
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
    written = found.name.replace("-", "_")
    if written in _ESCAPES or written.startswith("iso2022"):
        raise InvalidParameter(
            f"encoding={given!r} writes line ends and quotes in several ways, so that one row "
            "could become several; convert the file to UTF-8"
        )
    return found.name
