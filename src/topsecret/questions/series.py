"""A top list after every period under one budget, with correlated noise.

Independent lists, one a week, share a budget badly. A series gives every person a fixed number
of counts for life and every item noise that is correlated from week to week, so that the error
grows like the logarithm of the number of weeks. The statement and its proof are
docs/proofs/series.md.

The order of events in each period: the ledger notes that it begins; the rows are read; what counts
is *sealed* in the ledger, before there is any noise; the list is computed from what was sealed and
the key; it is stored; it is shown. Cut short anywhere, the next run finds the same list.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from topsecret.calibration.series import UNIT, drawn_values
from topsecret.errors import DataIndependentFailure, InDoubt, InvalidParameter, LedgerError
from topsecret.exact.rounding import Number
from topsecret.questions.periods import DayLike, moment
from topsecret.questions.schedule import first_day
from topsecret.questions.schedule_terms import Kind
from topsecret.questions.series_shown import known_series, shown_list
from topsecret.questions.series_terms import LATE, SeriesTerms, series_terms
from topsecret.results.export import plain
from topsecret.results.period_list import PeriodList
from topsecret.results.receipt import SERIES
from topsecret.results.record import to_record
from topsecret.results.release import Release
from topsecret.sources import Source, WhereLike
from topsecret.sources.open_source import SourceLike, Table, open_source

if TYPE_CHECKING:
    from topsecret.ledger import Ledger, Price
    from topsecret.ledger.contributions import Contributions
    from topsecret.ledger.publications import Period, Publication, Publications
    from topsecret.sources.session import Engine
    from topsecret.sources.source import Item


class Series:
    """A list after every period, with correlated noise, paid for at once.

    ``time``, ``every``, ``start`` and ``until`` are as for a ``Schedule``. *Cumulative* sums count
    everybody since the start; *window* sums those of the last ``window`` periods, and need no
    ``until``. Each person has ``max_counts`` counts for life (10, or 100 for windows): a pair of
    person and item counts once, in the period in which it is found, or again ``window`` periods
    later. Rows that arrive up to ``late`` periods after their own count when they are found.

    :meth:`run` draws the list of the last period that has ended. Rows of periods that were missed
    count in it. The counts that a series has made are kept in the ledger, people under a keyed
    hash: keep it as secret as the data.

    Parameters: ``source``: where the rows are, as for ``top_k``; ``item``: the column to rank, or
    several; ``person``: the column that identifies each person; ``time``: the column that says when
    a row happened; ``every``: the length of a period, such as "week" or "2 weeks"; ``until``: the
    day on which the last period ends; windows need none; ``k``: how many items each list has;
    ``epsilon``: of all lists together; ``ledger``: the ledger that pays and remembers; ``dataset``:
    whose budget in the ledger pays; ``delta``: of all lists together; ``start``: the first day of
    the first period; today unless given; ``kind``: "cumulative" for all rows since the start,
    "window" for the last periods; ``window``: how many periods a window has; ``name``: under which
    the ledger knows it; ``analyst``: in whose name it is asked, where the budget has allowances;
    ``where``: conditions that keep rows; ``max_counts``: how many counts each person has for life;
    10, or 100 for windows; ``late``: for how many periods rows that arrive late still count;
    ``table``: the table or view, where the source is a database; ``trust_view``: the data owner's
    word that each row of a view depends on its own person alone.

    *Guarantee.* All lists together are (``epsilon``, ``delta``)-differentially private under
    adding or removing one person with all their rows of all time, against whoever cannot break a
    keyed hash. Cumulative sums and windows of one period may have rows that depend on earlier
    lists; windows of two periods or more must not.
    """

    def __init__(
        self,
        source: SourceLike,
        *,
        item: str | Sequence[str],
        person: str,
        time: str,
        every: str,
        k: int,
        epsilon: Number,
        ledger: Ledger,
        dataset: str,
        until: DayLike | None = None,
        delta: Number = 1e-6,
        start: DayLike | None = None,
        kind: Kind = "cumulative",
        window: int = 1,
        max_counts: int | None = None,
        late: int = LATE,
        name: str = "series",
        analyst: str | None = None,
        where: WhereLike = (),
        table: Table | None = None,
        trust_view: bool = False,
    ) -> None:
        from topsecret.ledger.publications import Publications

        terms = series_terms(
            item=item if isinstance(item, str) else tuple(item),
            person=person,
            time=time,
            every=every,
            until=until,
            start=first_day(start, ledger, dataset, name),
            k=k,
            epsilon=epsilon,
            delta=delta,
            kind=kind,
            window=window,
            max_counts=max_counts,
            late=late,
            where=where,
        )
        opened = open_source(source, table, trust_view=trust_view)
        _engine(opened)
        books = Publications(ledger)
        self._open(opened, terms, ledger, books, _paid(books, terms, dataset, name, analyst))

    @classmethod
    def resume(
        cls,
        source: SourceLike,
        *,
        ledger: Ledger,
        dataset: str,
        name: str = "series",
        table: Table | None = None,
        trust_view: bool = False,
    ) -> Series:
        """Go on with a series that was begun: the ledger has its terms, its key and its counts.

        Parameters: those of ``Series``.
        """
        books, publication, terms = known_series(ledger, dataset, name)
        found = cls.__new__(cls)
        opened = open_source(source, table, trust_view=trust_view)
        found._open(opened, terms, ledger, books, publication)
        return found

    def _open(
        self,
        source: Source,
        terms: SeriesTerms,
        ledger: Ledger,
        books: Publications,
        publication: Publication,
    ) -> None:
        self.terms = terms
        self.name = publication.name
        self._source = source
        self._books, self._publication = books, publication
        self._counts = _contributions(ledger, publication, terms)
        self._check_price()
        _ = terms.question  # warns of a weak budget before a list is begun

    def __repr__(self) -> str:
        return f"Series({self.name!r} of dataset {self._publication.dataset!r})"

    def run(self, now: DayLike | datetime.datetime | None = None) -> PeriodList:
        """Draw the list of the last period that has ended, if it was not drawn, and show it."""
        ended = self.terms.periods.ended(moment(now))
        sealed = max(self._counts.nonces(), default=0)
        if sealed and self._state(sealed) != "stored":
            self._draw(sealed)  # a run was cut short after it had fixed the counts
        if ended > sealed:
            self._draw(ended)
        return self.shown(ended)

    def shown(self, period: int) -> PeriodList:
        """What is shown for a period: nothing is read but the ledger."""
        return shown_list(self._books, self._publication, self.terms, period)

    def _state(self, period: int) -> str:
        known = self._books.periods(self._publication)
        return known[period].state if period in known else ""

    def _draw(self, period: int) -> None:
        begun = self._books.begin(self._publication, period)
        if begun is not None and begun.state == "stored":
            return  # another program was quicker
        try:
            while (sealed := max(self._counts.nonces(), default=0)) < period:
                self._counts.seal(period, sealed, self._found(sealed, period))
        except DataIndependentFailure:
            # Nothing was fixed and nothing drawn. Without the ledger it stays begun.
            with suppress(LedgerError):
                self._books.release(self._publication, period)
            raise
        answer = self._answer(period)
        if answer is None:
            return  # another program has fixed the counts of a later period
        try:
            self._books.store(self._publication, period, answer)
        except InDoubt:
            if self._state(period) != "stored":
                raise
            # Another program stored the same answer.

    def _found(self, after: int, period: int) -> dict[int, list[tuple[str, str]]]:
        """The pairs (person, item) of the rows to be read, by the period of the rows."""
        from topsecret.sources.person_pairs import person_pairs

        ranges = self.terms.read(after, period)
        counted = self.terms.question.counted
        queries = [counted.only(*self.terms.within(*one)) for one in ranges]
        lists = person_pairs(_engine(self._source), queries)
        return {
            last: [(who, label_of(item)) for item, who in pairs]
            for (_, last), pairs in zip(ranges, lists, strict=True)
        }

    def _answer(self, period: int) -> dict[str, object] | None:
        """The answer of the last period whose counts are fixed: a function of them and the key."""
        nonces, sums = self._counts.sums(period)
        if max(nonces) != period:
            return None
        known = self._books.periods(self._publication)
        stored = max((p for p in known if known[p].state == "stored"), default=0)
        before: Mapping[str, Any] = (known[stored].answer or {}) if stored else {}
        if stored and _seal(nonces.get(stored, b"")) != before["seal"]:
            raise LedgerError(
                f"the counts that the ledger has for series {self.name!r} are not those of its "
                "last list: a part of the ledger was replaced; restore all of it, or begin another"
            )
        values = drawn_values(
            self.terms.numbers,
            self._publication.key,
            [nonces[one] for one in range(1, period + 1)],
            sums,
            [label for label, _ in before.get("known", ())],
        )
        ranked = sorted(values.items(), key=lambda one: (-one[1], one[0]))
        best = [item_of(label) for label, _ in ranked[: self.terms.asked["k"]]]
        release = self._release(best, period, known[period])
        return {
            "release": to_record(release),
            "known": [list(one) for one in ranked],
            "seal": _seal(nonces[period]),
        }

    def _release(self, items: Sequence[Item], period: int, state: Period) -> Release:
        from topsecret import __version__

        question, numbers = self.terms.question, self.terms.numbers
        wanted = self.terms.asked["k"]
        known = "the one item that is" if len(items) == 1 else f"all {len(items)} items that are"
        told = "" if len(items) == wanted else f"has {known} known so far."
        return Release(
            items=tuple(items),
            complete=len(items) == wanted,
            ordered=True,
            k=wanted,
            epsilon=self.terms.asked["epsilon"],
            delta=self.terms.asked["delta"],
            mechanism=SERIES,
            parameters=MappingProxyType(
                {
                    "kind": numbers.kind,
                    "periods": numbers.periods,
                    "window": numbers.window,
                    "max_counts": numbers.max_counts,
                    "sigma": float(numbers.sigma),
                }
            ),
            bound="Gaussian",
            threshold=(
                "somebody had it, and its noisy number of counted people exceeded the threshold "
                "of a period, this one or an earlier one; it is known from then on. That of this "
                f"period is {math.ceil(numbers.threshold(period) / UNIT):,}: an item with so many "
                "counted people passes half of the time"
            ),
            unit=question.unit,
            source=self._source.name,
            item=question.item,
            version=__version__,
            time=datetime.datetime.fromisoformat(state.time),
            told=told,
            where=" and ".join(map(str, question.counted.where)),
            assumes=(*getattr(self._source, "assumes", ()), *self.terms.caveats),
        )

    def _check_price(self) -> None:
        """A later version may find κ otherwise: never for more than was paid."""
        worst = self._books.terms(self._publication).worst(price_of_series(self.terms))
        if any(worst[name] > self._publication.cost.get(name, 0) for name in worst):
            raise InvalidParameter(
                f"the lists of {self.name!r} would cost more than was paid for them: this version "
                "of topsecret is another; go on with the one that began it"
            )


def price_of_series(terms: SeriesTerms) -> Price:
    """What all lists cost together."""
    from topsecret.ledger import Price

    return Price(terms.numbers.loss)


LONGEST = 1000
"""Characters of a label that every database can keep in an index."""


def label_of(item: Item) -> str:
    """An item as the text under which it is counted: no other item has it.

    Unless it is very long: then its texts are cut, with a hash at their ends, so that no row fails
    the series of the others. Somebody who has an item of just that name, too, has one item.
    """
    label = json.dumps(plain(item))
    return label if len(label) <= LONGEST else json.dumps(_cut(plain(item)))


def _cut(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_cut(one) for one in value]
    if not isinstance(value, str) or len(value) <= 20:
        return value
    whole = value.encode("utf-8", "surrogatepass")
    return f"{value[:20]}… {hashlib.blake2b(whole, digest_size=16).hexdigest()}"


def item_of(label: str) -> Item:
    """The item of a label."""
    value = json.loads(label)
    return tuple(value) if isinstance(value, list) else value


def _seal(nonce: bytes) -> str:
    """What is told of a period's random number: nothing that helps to find it."""
    return hashlib.sha256(nonce).hexdigest()


def _engine(source: Source) -> Engine:
    from topsecret.sources.session import Engine

    if isinstance(source, Engine):
        return source
    raise InvalidParameter(
        f"{source.name} counts leading items only; a series needs a file, a database or a data "
        "frame"
    )


def _contributions(ledger: Ledger, publication: Publication, terms: SeriesTerms) -> Contributions:
    from topsecret.ledger.contributions import Contributions, CountRule

    rule = CountRule(terms.kind, terms.window, terms.numbers.max_counts, terms.late)
    return Contributions(ledger, publication, rule)


def _paid(
    books: Publications, terms: SeriesTerms, dataset: str, name: str, analyst: str | None
) -> Publication:
    from topsecret.ledger import Request

    record = terms.record()
    request = Request(
        dataset=dataset,
        price=price_of_series(terms),
        question={"name": name, **record},
        unit=terms.question.unit,
        analyst=analyst,
    )
    return books.open(request, name, record, keyed=True)
