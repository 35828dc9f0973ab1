"""What an owner may call a dataset, and which of its columns may be asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from topsecret.errors import InvalidParameter
from topsecret.service.filters import KINDS

LONGEST_COLUMN = 200


def check_title(title: str) -> str:
    """A title for people."""
    if not 0 < len(title) <= 100 or not title.isprintable():
        raise InvalidParameter("a dataset needs a title of 1 to 100 printable characters")
    return title


def check_columns(
    person: str,
    columns: Sequence[str],
    filters: Mapping[str, str],
    existing: Collection[str],
) -> None:
    """What may be asked and chosen by is there, and is not the person."""
    if not columns or person in columns:
        raise InvalidParameter(
            "choose at least one column that may be asked, other than the person's"
        )
    if person in filters or not set(filters.values()) <= set(KINDS):
        raise InvalidParameter(
            "rows may be chosen by columns of text, number or date, other than the person's"
        )
    for column in (person, *columns, *filters):
        if column not in existing:
            raise InvalidParameter(f"the events have no column {column[:60]!r}; check its name")
        if len(column) > LONGEST_COLUMN:
            raise InvalidParameter(
                f"the column {column[:60]!r}… has a name of {len(column)} characters; at most "
                f"{LONGEST_COLUMN} can be asked"
            )
