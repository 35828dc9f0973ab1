"""One answer for each of several public groups, and what they cost together."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from topsecret.accounting.weak_privacy import weak_sentence
from topsecret.results import frames
from topsecret.results.export import csv_text, json_text, printable
from topsecret.results.receipt import without_or_with
from topsecret.results.release import Release

Group = str | int | bool


@dataclass(frozen=True, slots=True, repr=False)
class Releases(Mapping[Group, Release]):
    """The release of each group, by the group's value, in the order that was asked for.

    *Guarantee.* All releases together are (epsilon, delta)-differentially private. ``composition``
    says why: *parallel*, because each person was kept in one group alone, so that the costliest
    group is the price of all; *sequential*, because a person may be in several, so that the
    prices add up.
    """

    by: str
    """The column that defines the groups."""
    groups: Mapping[Group, Release]
    """The release of each group, by the group's value."""
    composition: str
    """*parallel* or *sequential*: how the groups add up."""
    epsilon: float
    """Of all groups together, rounded up."""
    delta: float
    """Of all groups together, rounded up."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))

    def __getitem__(self, group: Group) -> Release:
        return self.groups[group]

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        return (
            f"Releases(by={self.by!r}, groups={list(self.groups)!r}, "
            f"composition={self.composition!r}, epsilon={self.epsilon!r}, delta={self.delta!r})"
        )

    @property
    def together(self) -> str:
        """What all groups cost together, in words."""
        price = without_or_with(self.epsilon, self.delta)
        if self.composition == "parallel":
            reason = (
                "each person was kept in one group alone, chosen by a secret hash, so that the "
                "groups cost no more than one of them."
            )
        else:
            reason = "a person may be in several, so that the prices of the groups add up."
        weak = weak_sentence(self.epsilon, self.delta)
        return f"{price} for all {len(self)} groups: {reason}{weak}"

    def __str__(self) -> str:
        parts = [f"{self.by} = {printable(group)}\n\n{self[group]}" for group in self]
        return "\n\n".join([*parts, f"Together  {self.together}"])

    def _repr_html_(self) -> str:
        parts = [
            f"<h4>{html.escape(self.by)} = {html.escape(printable(group))}</h4>"
            f"{self[group]._repr_html_()}"
            for group in self
        ]
        return "".join([*parts, f"<p>Together: {html.escape(self.together)}</p>"])

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values that JSON can hold."""
        return {
            "by": self.by,
            "composition": self.composition,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "together": self.together,
            "groups": [
                {"group": group, "release": release.to_dict()} for group, release in self.items()
            ],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return json_text(self.to_dict(), indent)

    def to_csv(self) -> str:
        """One line for each item of each group."""
        header = next((release.rows()[0] for release in self.values()), [])
        lines = [[group, *line] for group, one in self.items() for line in one.rows()[1:]]
        return csv_text([[self.by, *header], *lines])

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: rank, items, n, plus_minus; ``attrs`` hold the whole answer."""
        return frames.to_pandas(self)

    def to_polars(self) -> Any:
        """The same table of polars, which has no place for a receipt."""
        return frames.to_polars(self)

    def to_arrow(self) -> Any:
        """The same ``pyarrow.Table``; its metadata hold the whole answer as JSON."""
        return frames.to_arrow(self)
