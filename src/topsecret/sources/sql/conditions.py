"""Which rows count: conditions as data, or an expression that is parsed and checked.

Both are judged row by row, so that neighbours stay neighbours. A condition is three values, none
of which is ever pasted into SQL:

>>> conditions([("country", "in", ["FR", "DE"]), ("age", ">=", 18)])
(Condition('country', 'in', ('FR', 'DE')), Condition('age', '>=', 18))

An :class:`Expression` is for callers who are trusted with the data. It may use columns, literals,
comparisons and a short list of functions, and nothing that looks beyond its row (no subqueries,
aggregates, windows) or that can change from run to run (no random, now). One person's value must
not decide whether a query fails: there is no arithmetic, and once the columns' kinds are known,
before a row is read, whatever could fail on some value is refused (``total``).

>>> Expression("lower(place) LIKE 'park%' AND NOT hidden").columns
('place', 'hidden')
>>> Expression("1 IN (SELECT 1)")  # doctest: +ELLIPSIS
Traceback (most recent call last):
topsecret.errors.InvalidParameter: an expression may not hold a subquery; pass it to ...
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from topsecret.errors import InvalidParameter
from topsecret.sources.fingerprints import Fingerprint, plain

if TYPE_CHECKING:
    from sqlglot import exp

Scalar = str | int | float | bool | Decimal | datetime.date | None

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "not in")

LONGEST = 10_000
"""At most so many characters of an expression; longer ones are not written by hand."""


@dataclass(frozen=True, slots=True, repr=False)
class Condition:
    """One comparison of a column with a value, or with several for ``in``."""

    column: str
    """The column that is compared."""
    operator: str
    """How it is compared, such as ``=``, ``<`` or ``in``."""
    value: Scalar | tuple[Scalar, ...]
    """What it is compared with; several values for ``in``."""

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter(
                f"a condition's column must be a name; found {self.column!r}; "
                "write (column, operator, value)"
            )
        written = str(self.operator).lower().strip()
        if written not in OPERATORS:
            raise InvalidParameter(
                f"operator {self.operator!r} must be one of: {', '.join(OPERATORS)}"
            )
        object.__setattr__(self, "operator", written)
        several = written in {"in", "not in"}
        if several and (isinstance(self.value, str | bytes) or not _listed(self.value)):
            raise InvalidParameter(f"{self.column!r} {written} needs a list; write ['a', 'b']")
        if several:
            object.__setattr__(self, "value", tuple(self.value))  # type: ignore[arg-type]
            if not self.value or None in self.value:  # type: ignore[operator]
                raise InvalidParameter(
                    f"{self.column!r} {written} needs at least one value, and no None"
                )
        elif self.value is None and written not in {"=", "!="}:
            raise InvalidParameter(f"{self.column!r} {written} None is never true; use = or !=")
        for value in self.values:
            _check_value(self.column, value)

    def __repr__(self) -> str:
        return f"Condition({self.column!r}, {self.operator!r}, {self.value!r})"

    def __str__(self) -> str:
        shown = (
            f"({', '.join(map(_shown, self.value))})"
            if isinstance(self.value, tuple)
            else _shown(self.value)
        )
        return f"{self.column} {self.operator} {shown}"

    def fingerprint(self) -> Fingerprint:
        """The three values; those of a list in one order, since a set has none."""
        value = sorted(self.value, key=repr) if isinstance(self.value, tuple) else self.value
        return {"column": self.column, "operator": self.operator, "value": plain(value)}

    @property
    def values(self) -> tuple[Scalar, ...]:
        """The value, or all of them."""
        return self.value if isinstance(self.value, tuple) else (self.value,)


@dataclass(frozen=True, eq=True, repr=False)
class Expression:
    """An SQL expression over the columns of one row, checked when it is made."""

    text: str
    """The expression as SQL text."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise InvalidParameter(f"an expression must be SQL text; found {self.text!r}")
        if len(self.text) > LONGEST:
            raise InvalidParameter(
                f"an expression must have at most {LONGEST} characters; shorten it"
            )
        if "\0" in self.text:
            raise InvalidParameter("an expression must not hold a NUL character; take it out")
        from topsecret.sources.sql.expressions import parse

        parse(self.text)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __str__(self) -> str:
        return " ".join(self.text.split())

    def fingerprint(self) -> Fingerprint:
        """The text as it was written."""
        return {"expression": self.text}

    @cached_property
    def tree(self) -> exp.Expression:
        """The checked expression, for an engine's dialect to render."""
        from topsecret.sources.sql.expressions import parse

        return parse(self.text)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, in order of appearance."""
        from topsecret.sources.sql.expressions import columns

        return columns(self.tree)


Where = tuple[Condition | Expression, ...]
"""What a row must fulfil, all of it."""

ConditionLike = (
    str | Condition | Expression | tuple[str, str, Scalar | Collection[Scalar]] | list[Any]
)
WhereLike = ConditionLike | Iterable[ConditionLike] | None
"""What a caller may pass as ``where``."""


def conditions(given: WhereLike) -> Where:
    """What a caller may pass as ``where``, checked: an expression, or a list of conditions."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return ()
    if isinstance(given, str | Expression | Condition):
        return (_one(given),)
    if isinstance(given, tuple) and len(given) == 3 and isinstance(given[0], str):
        return (Condition(*given),)
    if not isinstance(given, Iterable):
        raise _not_conditions(given)
    return tuple(_one(one) for one in given)


def _one(given: Any) -> Condition | Expression:
    if isinstance(given, Condition | Expression):
        return given
    if isinstance(given, str):
        return Expression(given)
    if isinstance(given, tuple | list) and len(given) == 3:
        return Condition(*given)
    raise _not_conditions(given)


def _not_conditions(given: object) -> InvalidParameter:
    return InvalidParameter(
        f"where must hold conditions (column, operator, value); found a {type(given).__name__}; "
        "write where=[('country', '=', 'FR')]"
    )


def _shown(value: Scalar) -> str:
    """A value as a reader writes it: no type's name, and a day without its midnight."""
    if value is None:
        return "no value"
    if isinstance(value, datetime.datetime):
        midnight = value.tzinfo is None and value.time() == datetime.time()
        return str(value.date() if midnight else value)
    return str(value) if isinstance(value, datetime.date | Decimal) else repr(value)


def _listed(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset | range)


def _check_value(column: str, value: object) -> None:
    if value is not None and not isinstance(value, str | int | float | Decimal | datetime.date):
        raise InvalidParameter(
            f"the value for {column!r} must be text, a number, a date or None; "
            f"found a {type(value).__name__}"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidParameter(f"the value for {column!r} must be finite; found {value}")
    if isinstance(value, Decimal) and not value.is_finite():
        raise InvalidParameter(f"the value for {column!r} must be finite; found {value}")
    if isinstance(value, str) and "\0" in value:
        raise InvalidParameter(
            f"the value for {column!r} must not hold a NUL character; take it out"
        )
