"""Answers for people and programs: safe on a terminal, in a page, in a spreadsheet.

An item's name is somebody's input. Whatever shows one comes here: it must not move the cursor of
a terminal, become markup of a page or a formula of a spreadsheet.

>>> csv_text([["rank", "item"], [1, "=1+1"]])
"rank,item\\r\\n1,'=1+1\\r\\n"
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import textwrap
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

Public = int | float | str | None
"""A public parameter."""

Receipt = Sequence[tuple[str, str]]
"""Pairs of a label and a text in plain words."""

WIDTH = 80
FORMULA = tuple("=+-@＝＋－＠\u2212\ufe62\ufe63\ufe66\ufe6b")
"""How a text begins that a spreadsheet would run; also wide, small, or as a minus sign."""
_CELLS = re.compile(r"(?<=[;\t\r\n])")
"""Where a spreadsheet that does not separate by commas begins another cell."""
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and signs that nothing is seen of."""


def printable(item: Hashable) -> str:
    """The item as text in which control characters are escaped.

    >>> printable("caf\\u00e9"), printable("\\x1b[2J"), printable(""), printable(7)
    ('café', '\\\\x1b[2J', '(empty text)', '7')
    """
    text = " · ".join(map(str, item)) if isinstance(item, tuple) else str(item)
    if not text:
        return "(empty text)"
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def plain(item: Hashable) -> Any:
    """The item as a value that JSON can hold."""
    if isinstance(item, tuple):
        return [plain(part) for part in item]
    return item if isinstance(item, str | int | float | None) else str(item)


def unnamed(items: Sequence[object]) -> str:
    """What stands where an item could not be named."""
    return f"{'no other' if items else 'no'} item could be named safely"


def ranked(items: Sequence[Hashable], *, ordered: bool, filled: int = 0) -> list[tuple[str, str]]:
    """The items with their ranks, as text that is safe on a terminal; ``?`` for random ones."""
    drawn = len(items) - filled
    return [
        ("?" if rank > drawn else str(rank) if ordered else "·", printable(item))
        for rank, item in enumerate(items, start=1)
    ]


def json_text(record: Mapping[str, object], indent: int | None = 2) -> str:
    """The record as JSON text."""
    return json.dumps(record, indent=indent, ensure_ascii=False, allow_nan=False)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """The rows as CSV; a text that a spreadsheet would run as a formula is quoted for it.

    Also behind characters that nobody sees, and behind a semicolon or a tab, where a spreadsheet
    that separates by those begins another cell. JSON has the text as it is.
    """
    file = io.StringIO(newline="")
    csv.writer(file).writerows([_cell(value) for value in row] for row in rows)
    return file.getvalue()


def _cell(value: Any) -> Any:
    """The value; a quotation mark stands before whatever a spreadsheet would run in it.

    >>> _cell("\ufeff=1+1"), _cell("x;=1+1"), _cell("a = b")
    ("'\\ufeff=1+1", "x;'=1+1", 'a = b')
    >>> print(_cell('x;"=1+1;y'))
    x;'"=1+1;y
    """
    if not isinstance(value, str):
        return value
    safe = "".join(f"'{part}" if _runs(part) else part for part in _CELLS.split(value))
    begins = value.startswith(("\t", "\r", "\n"))
    return f"'{safe}" if begins else safe


def _runs(text: str) -> bool:
    """Whether it is a formula, perhaps behind what spreadsheets skip: unseen letters, quotes."""
    seen = next((letter for letter in text if letter != '"' and not _unseen(letter)), "")
    return seen in FORMULA


def _unseen(letter: str) -> bool:
    marks = unicodedata.category(letter) in ("Mn", "Me")
    return letter.isspace() or not letter.isprintable() or marks or letter in _BLANK


def with_receipt(lines: Iterable[str], receipt: Receipt) -> str:
    """Plain text, the receipt wrapped below it."""
    shown = [*lines, "", "Receipt"]
    width = max(len(label) for label, _ in receipt)
    for label, text in receipt:
        shown += textwrap.wrap(
            text,
            WIDTH,
            initial_indent=f"  {label:<{width}}  ",
            subsequent_indent=" " * (width + 4),
        )
    return "\n".join(shown)


def html_table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    note: str,
    receipt: Receipt,
) -> str:
    """A table with its receipt folded away, as a notebook shows it."""
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    terms = "".join(
        f"<dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd>" for label, text in receipt
    )
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{cells}</tr></thead>"
        f"<tbody>{body}</tbody></table><p>{html.escape(note)}</p>"
        f"<details><summary>Receipt</summary><dl>{terms}</dl></details>"
    )
