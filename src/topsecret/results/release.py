"""The answer with its receipt: what was released, at what price, and what it means.

A ``Release`` holds what a mechanism answered and public parameters, nothing else. It may be
shown, stored and passed on: whatever is done with it costs no further privacy.
"""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from topsecret.accounting.charge import Charge
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import InvalidParameter
from topsecret.results import export, frames
from topsecret.results.export import Public, plain, printable
from topsecret.results.intervals import Intervals, smoothed
from topsecret.results.paid_in_advance import PaidInAdvance
from topsecret.results.receipt import SERIES, receipt_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """A private answer to "which items have the most people?", ready to be shown.

    *Guarantee.* All fields together are (epsilon, delta)-differentially private for the neighbours
    that ``unit`` names: the items, how many they are, counts, and what a noisy look chose; both
    numbers are what the accounting proves, rounded up. What else is here is public.
    """

    items: tuple[Hashable, ...]
    """The released items, best first when ``ordered``."""
    complete: bool
    """True when all items that were asked for are named; False when NOTHING stands for some."""
    ordered: bool
    """Whether the order of the items is part of the answer."""
    k: int | Literal["auto", "all"]
    """How many items were asked for; "auto" for as many as the counts set apart, "all" for all."""
    epsilon: float
    """Of the privacy guarantee, as proven, rounded up."""
    delta: float
    """Of the privacy guarantee, as proven, rounded up."""
    mechanism: str
    """The mechanism's name, as ``top_k`` takes it."""
    parameters: Mapping[str, Public]
    """The mechanism's public parameters, as a mapping that cannot be changed."""
    bound: str
    """The composition bound that proves epsilon."""
    threshold: str
    """The rule by which an item may be named, in words."""
    unit: PrivacyUnit
    """Who is protected, and which datasets are neighbours."""
    source: str
    """Where the rows were read, in words."""
    item: str
    """The column that named the items."""
    version: str
    """The version of topsecret that answered."""
    time: datetime
    """When the answer was drawn or, with a ledger, paid for."""
    chosen: int | None = None
    """A number that the mechanism chose on the way and released too: a length, or a k̄."""
    told: str = ""
    """How the list ended in the mechanism's words, going on after "The list"; may be empty."""
    counts: tuple[int, ...] | None = None
    """Noisy counts of the items, in their order; None when none were asked for."""
    persons: int | None = None
    """The noisy number of all people; None when it was not asked for."""
    half_width: int | None = None
    """Each true count lies within this of its noisy one with 95% probability."""
    intervals: Intervals | None = None
    """The law of the counts' noise, and all that the counts tell by it; None without counts."""
    group: str = ""
    """Which group of rows the answer is about, in words; empty for all."""
    where: str = ""
    """Which rows were counted, in words; empty for all."""
    domain: str = ""
    """The public domain in words; empty when only observed items could be named."""
    charge: Charge | None = None
    """What the answer took from a budget; None without a ledger."""
    assumes: tuple[str, ...] = ()
    """What was believed of the source and not checked, in words."""
    weighted: tuple[float, ...] | None = None
    """Noisy numbers of *weighted* people; without noise, none is above the number of people."""
    at_least: tuple[int, ...] | None = None
    """How many people each item has at least: all of them hold with 95% probability."""
    measure: str = ""
    """What the items are ranked by, in words; empty for distinct people."""
    least: bool = False  # whether the items with the least were asked for
    """Whether the items with the least were asked for."""
    clipping: str = ""
    """How one person's part in a score is bounded, in words; empty for distinct people."""

    paid_in_advance: PaidInAdvance | None = None
    """The schedule or series that the list belongs to; None for an answer of its own."""

    def __reduce__(self) -> tuple[object, tuple[dict[str, object]]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _unpickled, (values | {"parameters": dict(self.parameters)},)

    @property
    def title(self) -> str:
        """What was asked, in one line."""
        words = {"auto": "Most common values", "all": "Values safe to name"}
        end = "Bottom" if self.least else "Top"
        top = words[self.k] if isinstance(self.k, str) else f"{end} {self.k}"
        where = "".join(f", where {part}" for part in (self.group, self.where) if part)
        usual = self.measure or self._people
        by = usual if self.weighted is None else "weighted people"
        part = ", with a limit on what each person adds" if self.clipping else ""
        return f"{top} of {self.item!r} in {self.source}{where}, by {by}{part}"

    @property
    def _people(self) -> str:
        """Which people are counted, in words: a series counts each a limited number of times."""
        if self.mechanism != SERIES:
            return "number of distinct people"
        window, most = self.parameters["window"], self.parameters["max_counts"]
        last = "period" if window == 1 else f"{window} periods"
        when = f" in the last {last}" if self.parameters["kind"] == "window" else ""
        counts = "1 count" if most == 1 else f"{most} counts"
        return f"number of people counted{when}, each of whom has {counts} for life"

    @property
    def ending(self) -> str:
        """How the list ended, as a sentence that begins with "The list"."""
        if self.told or isinstance(self.k, str):
            return self.told
        if self.complete:
            return f"has {'the one item' if self.k == 1 else f'all {self.k} items'} asked for."
        return (
            f"ended early, with {len(self.items)} of {self.k} items: "
            "the next ones were too close together to be named safely, or noise made them look so."
        )

    @property
    def receipt(self) -> tuple[tuple[str, str], ...]:
        """The receipt as pairs of a label and a text in plain words."""
        return receipt_lines(self)

    def interval(self, place: int) -> tuple[int, int]:
        """Between which counts the item at ``place`` lies with 95% probability."""
        noisy, width = self._noisy(), self.half_width or 0
        return max(0, noisy[place] - width), max(0, noisy[place] + width)

    def difference(self, place: int, other: int) -> tuple[int, int]:
        """By how many people one item leads another, with 95% probability.

        Parameters: ``place``: the place of one item in the list, from 0 on; ``other``: the place of
        the other.
        """
        noisy = self._noisy()
        between, width = noisy[place] - noisy[other], self._law().difference_half_width()
        return between - width, between + width

    def share(self, place: int) -> tuple[float, float]:
        """Which share of all people has the item, with 95% probability."""
        noisy = self._noisy()
        if self.persons is None:
            raise InvalidParameter(
                "the number of people was not released; ask with count_persons=True"
            )
        return self._law().share(noisy[place], self.persons)

    def order(self, place: int) -> float:
        """How sure it is, by the counts alone, that an item has more people than the next one."""
        noisy = self._noisy()
        if not 0 <= place < len(noisy) - 1:
            raise InvalidParameter(f"place={place} must have an item after it; lower place")
        return self._law().order(noisy, place)

    @property
    def smoothed(self) -> tuple[float, ...] | None:
        """Guesses that use the list's order, nearer to the counts on average. No intervals."""
        falling = self.ordered and not self.least
        return smoothed(self.counts) if falling and self.counts is not None else None

    @property
    def orders(self) -> tuple[float, ...] | None:
        """``order`` of each two neighbours; None without counts, or for a set."""
        if self.counts is None or not self.ordered or self.least or self.intervals is None:
            return None
        return self.intervals.orders(self.counts)

    def _noisy(self) -> tuple[int, ...]:
        if self.counts is None:
            raise InvalidParameter("the answer has no counts; ask with counts=True")
        return self.counts

    def _law(self) -> Intervals:
        if self.intervals is None:
            raise InvalidParameter(
                "the answer was stored before the law of its noise was kept; half_width is known"
            )
        return self.intervals

    @property
    def filled(self) -> int:
        """How many of the last items were filled in at random, without looking at the data."""
        if not self.parameters.get("fill") or self.chosen is None:
            return 0
        return len(self.items) - self.chosen

    def ranked(self) -> list[tuple[str, str]]:
        """The items with their ranks as text that is safe on a terminal; ``?`` for random ones."""
        return export.ranked(self.items, ordered=self.ordered, filled=self.filled)

    def __str__(self) -> str:
        """A ranked table and the receipt, as plain text."""
        lines = [*textwrap.wrap(self.title, export.WIDTH), ""]
        head, noisy = "", [""] * len(self.items)
        if self.counts is not None:
            noisy = [f"{count:>10,} ± {self.half_width}  " for count in self.counts]
            head = f"{'people':>{len(f'{0:>10} ± {self.half_width}')}}  "
        elif self.at_least is not None:
            noisy = [f"at least {count:>9,}  " for count in self.at_least]
            head = f"{'people':>18}  "
        lines.append(f"{'rank':>5}  {head}{printable(self.item)}")
        lines += [
            f"{rank:>5}  {count}{item}"
            for (rank, item), count in zip(self.ranked(), noisy, strict=True)
        ]
        if not self.complete:
            lines.append(f"{'–':>5}  ({export.unnamed(self.items)})")
        return export.with_receipt(lines, self.receipt)

    def __repr__(self) -> str:
        return (
            f"Release(items={self.items!r}, complete={self.complete}, "
            f"epsilon={self.epsilon!r}, delta={self.delta!r}, mechanism={self.mechanism!r})"
        )

    def _repr_html_(self) -> str:
        noisy = self.counts is not None
        header = ["rank", printable(self.item), *(["people"] if noisy else [])]
        header += ["at least"] if self.at_least is not None else []
        rows = [
            (*line, f"{self.counts[place]} ± {self.half_width}") if self.counts else line
            for place, line in enumerate(self.ranked())
        ]
        if self.at_least is not None:
            rows = [(*line, f"at least {n}") for line, n in zip(rows, self.at_least, strict=True)]
        note = f"The list {self.ending}"
        return export.html_table(self.title, header, rows, note, self.receipt)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values that JSON can hold."""
        law = self.intervals
        return {
            "items": [plain(item) for item in self.items],
            "complete": self.complete,
            "ordered": self.ordered,
            "k": self.k,
            "chosen": self.chosen,
            "filled": self.filled,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "bound": self.bound,
            "threshold": self.threshold,
            "source": self.source,
            "item": self.item,
            "person": self.unit.person,
            "adjacency": self.unit.adjacency,
            "max_items": self.unit.max_items,
            "counts": None if self.counts is None else list(self.counts),
            "half_width": self.half_width,
            "persons": self.persons,
            "intervals": None if law is None else law.to_dict(self.counts or (), self.persons),
            "smoothed": None if self.smoothed is None else list(self.smoothed),
            "orders": None if self.orders is None else list(self.orders),
            "weighted": None if self.weighted is None else list(self.weighted),
            "at_least": None if self.at_least is None else list(self.at_least),
            "where": self.where,
            "group": self.group,
            "domain": self.domain,
            **{n: getattr(self, n) for n in ("measure", "clipping", "least") if getattr(self, n)},
            "charge": None if self.charge is None else self.charge.to_dict(),
            **({"paid_in_advance": paid.to_dict()} if (paid := self.paid_in_advance) else {}),
            "receipt": dict(self.receipt),
            "version": self.version,
            "time": self.time.isoformat(timespec="seconds"),
        }

    def rows(self) -> list[list[Public]]:
        """A header, then one line for each item: rank, item, and its noisy count if there is.

        Behind a count come its share, its smoothed value and how sure it is before the next one.
        """
        noisy = self.counts is not None
        shares: list[Public] = ["share from", "share to"] if self.persons is not None else []
        surely: list[Public] = ["at_least"] if self.at_least is not None else []
        guesses, orders = self.smoothed, (*(self.orders or ()), *([None] * len(self.items)))
        last: list[Public] = [] if guesses is None else ["smoothed", "before next"]
        lines: list[list[Public]] = [
            ["rank", self.item, *(["persons", "within"] if noisy else []), *shares, *surely, *last]
        ]
        for place, item in enumerate(self.items):
            random = place >= len(self.items) - self.filled
            line: list[Public] = ["?" if random else place + 1 if self.ordered else None]
            line.append(plain(item))
            if self.counts is not None:
                line += [self.counts[place], self.half_width]
            if self.persons is not None:
                line += self.share(place)
            if self.at_least is not None:
                line.append(self.at_least[place])
            if guesses is not None:
                line += [guesses[place], orders[place]]
            lines.append(line)
        return lines

    def to_csv(self) -> str:
        """The items as CSV text; the receipt is in ``to_json``."""
        return export.csv_text(self.rows())

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: rank, items, n, plus_minus; ``attrs`` hold the whole answer."""
        return frames.to_pandas(self)

    def to_polars(self) -> Any:
        """The same table of polars, which has no place for a receipt."""
        return frames.to_polars(self)

    def to_arrow(self) -> Any:
        """The same ``pyarrow.Table``; its metadata hold the whole answer as JSON."""
        return frames.to_arrow(self)

    def plot(self) -> Figure:
        """Ranked bars, with 95% intervals where there are counts (the extra ``plot``)."""
        from topsecret.results.plot import ranked_bars

        labels = [item for _, item in self.ranked()]
        return ranked_bars(self.title, labels, self.counts, self.half_width, self.smoothed)

    def to_json(self, *, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return export.json_text(self.to_dict(), indent)


def _unpickled(values: dict[str, Any]) -> Release:
    return Release(**values | {"parameters": MappingProxyType(values["parameters"])})
