"""Which rows a question is about: conditions on the columns that the owner allows, by their kinds.

>>> typed("number", "at least", "18"), typed("text", "one of", "FR, DE")
(('>=', 18), ('in', ('FR', 'DE')))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal, get_args

from topsecret.service.problems import Problem

Kind = Literal["text", "number", "date"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Verb = Literal["is", "is not", "at least", "at most", "one of"]
VERBS: dict[str, tuple[Verb, ...]] = {
    "text": ("is", "is not", "one of"),
    "number": ("is", "at least", "at most"),
    "date": ("is", "at least", "at most"),
}
"""What can be asked of a column of each kind."""

MOST_CONDITIONS, LONGEST_VALUE = 5, 500
TOO_MANY = f"A question has at most {MOST_CONDITIONS} conditions: leave some of them out."
TOO_LONG = f"The value of a condition has at most {LONGEST_VALUE} characters: write a shorter one."

_OPERATORS = {"is": "=", "is not": "!=", "at least": ">=", "at most": "<=", "one of": "in"}

Filter = tuple[str, str, str]
"""A column, a verb and a value as text, as a person fills them in."""

Typed = str | int | float | date | tuple[str, ...]


def typed(kind: str, verb: str, value: str) -> tuple[str, Typed]:
    """The operator and the value of a condition; a ``Problem`` where they do not suit the kind."""
    if verb not in VERBS[kind] or not value:
        raise _wrong(f"A {kind} column can be asked by: {', '.join(VERBS[kind])}, and a value.")
    if verb == "one of":  # blanks beside a comma belong to it
        listed = tuple(part.strip() for part in value.split(","))
        if not all(listed):
            raise _wrong("One of the values is empty: there is a comma too many.")
        return "in", listed
    found: Typed | None = value  # a text as it is: one with a blank is another
    if kind == "number":
        found = _number(value)
    elif kind == "date":
        try:
            found = date.fromisoformat(value.strip())
        except ValueError:
            found = None
    if found is None:
        example = "12.5" if kind == "number" else "2026-01-31"
        raise _wrong(f"The value of a {kind} column is written like {example}.")
    return _OPERATORS[verb], found


def check_size(asked: Sequence[Filter]) -> None:
    """Refuse more, or longer, conditions than a question has: none is cut."""
    if len(asked) > MOST_CONDITIONS:
        raise Problem(422, "invalid_request", TOO_MANY)
    if any(len(value) > LONGEST_VALUE for _, _, value in asked):
        raise Problem(422, "invalid_request", TOO_LONG)


def conditions(asked: Sequence[Filter], allowed: Mapping[str, str]) -> list[tuple[str, str, Typed]]:
    """The conditions as the library takes them, on the columns that the owner allows alone."""
    found = []
    for column, verb, value in asked:
        if column not in allowed:
            names = ", ".join(allowed) or "none"
            raise _wrong(f"This column cannot be filtered by; choose from: {names}")
        found.append((column, *typed(allowed[column], verb, value)))
    return found


def in_words(asked: Sequence[Filter]) -> str:
    """The conditions in a few words; empty for none."""
    return "".join(
        f"{', where' if not place else ' and'} {column} {verb} {value}"
        for place, (column, verb, value) in enumerate(asked)
    )


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _wrong(message: str) -> Problem:
    return Problem(400, "invalid", message)
