"""A question as the service takes it, from keywords like the library's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol

from topsecret.errors import InvalidParameter

_VERBS = {"=": "is", "!=": "is not", ">=": "at least", "<=": "at most", "in": "one of"}

Scalar = str | int | float | date
Kinds = Callable[[], Mapping[str, str]]
"""Looks up which columns rows may be chosen by: whether each has text, numbers or dates."""
Where = Sequence[tuple[str, str, Scalar | Sequence[str]]]
"""Conditions ``(column, operator, value)``; operators are =, !=, >=, <= and in."""


Bound = int | float | str


class Summed(Protocol):
    """The sum of a column, in multiples of a unit: ``topsecret.Sum``."""

    @property
    def column(self) -> str:
        """The column of numbers."""
        ...

    @property
    def unit(self) -> Any:
        """What values are rounded to."""
        ...


def question(
    item: str,
    k: int | str,
    epsilon: float | None,
    where: Where,
    counts: bool,
    at_least: int | None,
    kinds: Kinds,
) -> dict[str, object]:
    """What is asked, without what it ranks by and its groups.

    Parameters: ``item``: the column to rank; ``k``: how many items; "auto" for as many as stand
    out, "all" for all that are safe; ``epsilon``: how much of the share to spend; left out where
    the owner fixed the price; ``where``: conditions ``(column, operator, value)`` that keep rows;
    ``counts``: whether noisy counts are added; ``at_least``: name what surely has so many people;
    ``kinds``: called to look up the columns' kinds.
    """
    conditions = []
    for column, operator, value in where:
        if operator not in _VERBS:
            raise InvalidParameter(f"operator {operator!r} must be one of: {', '.join(_VERBS)}")
        several = not isinstance(value, str | int | float | date)
        if several != (operator == "in"):
            raise InvalidParameter(
                f"{column!r} {operator} needs {'a list' if not several else 'one value'}"
            )
        text = _list(column, value) if several else _text(column, value, kinds)
        conditions.append({"column": column, "verb": _VERBS[operator], "value": text})
    asked: dict[str, object] = {"column": item, "k": k}
    if epsilon is not None:
        warn_weak(epsilon, 0)
        asked["epsilon"] = epsilon
    if at_least is not None:
        asked["at_least"] = at_least
    return (
        asked | ({"where": conditions} if conditions else {}) | ({"counts": True} if counts else {})
    )


def warn_weak(epsilon: float, delta: float) -> None:
    """Warn of a weak budget, as the library does.

    Parameters: ``epsilon``: of the answer; 0 if it needs no look; ``delta``: of the answer.
    """
    from topsecret.accounting.weak_privacy import warn_if_weak

    warn_if_weak(epsilon, delta)


def measured(
    measure: str | Summed,
    max_per_item: Bound | Sequence[Bound] | None,
    max_total: Bound | None,
) -> dict[str, object]:
    """What it ranks by, where it is not people.

    Parameters: ``measure``: "persons", "rows" or ``Sum("column")``; ``max_per_item``: the most that
    one person adds to one item, by rows or sums; ``max_total``: a bound on all that one person
    adds.
    """
    if measure == "persons" and max_per_item is None and max_total is None:
        return {}
    if measure != "rows" and isinstance(measure, str):
        raise InvalidParameter(
            f"measure={measure!r} must be 'persons' without bounds, 'rows' or Sum('column')"
        )
    asked: dict[str, object] = {"of": "rows"}
    if not isinstance(measure, str):
        asked = {"of": "sum", "column": measure.column, "unit": _decimal(measure.unit)}
    if max_per_item is not None:
        several = isinstance(max_per_item, Sequence) and not isinstance(max_per_item, str)
        listed = max_per_item if several else [max_per_item]
        asked["max_per_item"] = [_decimal(one) for one in listed]  # type: ignore[union-attr]
    elif max_total is not None:
        asked["max_per_item"] = [_decimal(max_total)]
    if max_total is not None:
        asked["max_total"] = _decimal(max_total)
    return {"measure": asked}


def grouped(
    by: str | None, groups: Sequence[str | int], disjoint: bool, kinds: Kinds
) -> dict[str, object]:
    """Its groups, if it has any.

    Parameters: ``by``: the column that defines the groups; ``groups``: the groups to answer for, by
    their values; ``disjoint``: whether each person is kept in one group alone; ``kinds``: called
    to look up the columns' kinds.
    """
    if by is None and not groups:
        return {}
    if by is None or not groups or isinstance(groups, str):
        raise InvalidParameter(
            f"by={by!r} needs groups=[…], the public values to answer for, each once"
        )
    values = [_text(by, one, kinds) for one in groups]
    return {"groups": {"by": by, "values": values, "disjoint": disjoint}}


def _text(column: str, value: object, kinds: Kinds) -> str:
    """A value as the service takes it; refused where it would be another question than asked."""
    if isinstance(value, str):
        if not value:
            raise InvalidParameter(f"the service does not compare {column!r} with an empty text")
        return str(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        kind, text = "number", int.__repr__(value) if isinstance(value, int) else repr(float(value))
    elif isinstance(value, date) and not isinstance(value, datetime):
        kind, text = "date", value.isoformat()
    else:
        raise InvalidParameter(
            f"the service compares {column!r} with a text, a number or a day; "
            f"found a {type(value).__name__}"
        )
    known = kinds().get(column, kind)  # the service says in its words that there is none
    if known != kind:
        raise InvalidParameter(
            f"the service compares {column!r} as a {known}, and {text} is a {kind}; "
            f"give a {known} to ask for that"
        )
    return text


def _list(column: str, values: Any) -> str:
    """Texts with commas between them, as the service takes several."""
    listed = list(values)
    if not listed or not all(isinstance(one, str) for one in listed):
        raise InvalidParameter(f"{column!r} in needs a list of one text or more")
    for one in listed:
        if not one or "," in one or one != one.strip():
            raise InvalidParameter(
                f"{one!r} cannot be in a list here, where commas and the blanks beside them "
                f"separate values; ask for it with '='"
            )
    return ", ".join(listed)


def _decimal(number: object) -> str:
    """As the service reads it: without an exponent."""
    from decimal import Decimal, InvalidOperation

    try:
        return f"{Decimal(str(number)):f}"
    except InvalidOperation:
        return str(number)  # "private", or what the service refuses
