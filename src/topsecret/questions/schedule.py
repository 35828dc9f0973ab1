"""Top lists at public times under one budget, each held until the next.

Fifty-two lists of a year share a budget badly. A schedule draws few, at times that are public, and
repeats the last one in between, which is free: after periods 1, 2, 4, 8, … where rows pile up
(*cumulative*), after every W periods where only the last W count (*window*).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from topsecret.errors import DataIndependentFailure, InvalidParameter, LedgerError
from topsecret.exact.rounding import Number
from topsecret.questions.answer import checked_plan, drawn
from topsecret.questions.payment import price_of
from topsecret.questions.periods import DayLike, moment
from topsecret.questions.planned_lists import Plan
from topsecret.questions.schedule_terms import Kind, ScheduleTerms, terms_of
from topsecret.results.paid_in_advance import PaidInAdvance
from topsecret.results.period_list import PeriodList
from topsecret.results.record import release_from, to_record
from topsecret.results.release import Release
from topsecret.sources import Source, WhereLike
from topsecret.sources.open_source import SourceLike, Table, open_source

if TYPE_CHECKING:
    from topsecret.ledger import Ledger
    from topsecret.ledger.publications import Publication, Publications


class Schedule:
    """Lists at public times, held in between, paid for at once.

    ``time`` is the column that says when a row happened. Periods are half-open, ``every`` "day",
    "week", "month", "quarter", "year" or such as "2 weeks", from the day ``start`` (today, unless
    given) to the day ``until``. *Cumulative* lists count all rows since the start and are drawn
    after periods 1, 2, 4, 8, …; *window* lists count those of the last ``window`` periods and are
    drawn every ``window`` periods. Other periods repeat the last list.

    ``epsilon`` and ``delta`` are for the whole schedule and are taken from the budget of
    ``dataset`` when it is begun, under a ``name``. :meth:`run` draws what is due and shows the list
    of the last period that has ended; it may be called as often as wanted. A schedule that was
    begun is found by :meth:`resume`, from the ledger alone.

    Parameters: ``source``: where the rows are, as for ``top_k``; ``item``: the column to rank, or
    several; ``person``: the column that identifies each person; ``time``: the column that says when
    a row happened; ``every``: the length of a period, such as "week" or "2 weeks"; ``until``: the
    day on which the last period ends; ``k``: how many items each list has; ``epsilon``: of all
    lists together; ``ledger``: the ledger that pays and remembers; ``dataset``: whose budget in the
    ledger pays; ``delta``: of all lists together; ``start``: the first day of the first period;
    today unless given; ``kind``: "cumulative" for all rows since the start, "window" for the last
    periods; ``window``: how many periods a window has; ``name``: under which the ledger knows it;
    ``analyst``: in whose name it is asked, where the budget has allowances; ``where``: conditions
    that keep rows; ``k_bar``: how many leading items may be looked at; ``mechanism``: the algorithm
    by name; ``max_items``: how many items of one person are counted; None for no cap; ``counts``:
    whether noisy counts are added; ``counts_part``: the part of the budget for counts; ``table``:
    the table or view, where the source is a database; ``trust_view``: the data owner's word that
    each row of a view depends on its own person alone.

    *Guarantee.* All lists together are (``epsilon``, ``delta``)-differentially private under
    adding or removing one person with all their rows of all time, however rows depend on lists
    that were shown before (adaptive composition).
    """

    def __init__(
        self,
        source: SourceLike,
        *,
        item: str | Sequence[str],
        person: str,
        time: str,
        every: str,
        until: DayLike,
        k: int | Literal["auto", "all"],
        epsilon: Number,
        ledger: Ledger,
        dataset: str,
        delta: Number = 1e-6,
        start: DayLike | None = None,
        kind: Kind = "cumulative",
        window: int = 1,
        name: str = "schedule",
        analyst: str | None = None,
        k_bar: int | None = None,
        mechanism: str = "auto",
        where: WhereLike = (),
        max_items: int | None = None,
        counts: bool = False,
        counts_part: float | None = None,
        table: Table | None = None,
        trust_view: bool = False,
    ) -> None:
        from topsecret.ledger.publications import Publications

        if not isinstance(mechanism, str):
            raise InvalidParameter("a schedule needs a mechanism by its name: a ledger keeps it")
        terms = terms_of(
            item=item,
            person=person,
            time=time,
            every=every,
            until=until,
            k=k,
            epsilon=epsilon,
            delta=delta,
            start=first_day(start, ledger, dataset, name),
            kind=kind,
            window=window,
            k_bar=k_bar,
            mechanism=mechanism,
            where=where,
            max_items=max_items,
            counts=counts,
            counts_part=counts_part,
        )
        opened = open_source(source, table, trust_view=trust_view)
        plan = checked_plan(terms.question(terms.due[0]), opened, None, len(terms.due))
        books = Publications(ledger)
        self._open(opened, terms, plan, books, _paid(books, terms, plan, dataset, name, analyst))

    @classmethod
    def resume(
        cls,
        source: SourceLike,
        *,
        ledger: Ledger,
        dataset: str,
        name: str = "schedule",
        table: Table | None = None,
        trust_view: bool = False,
    ) -> Schedule:
        """Go on with a schedule that was begun: the ledger has its terms.

        Parameters: ``source``: where the rows are, as before; ``ledger``: the ledger that paid;
        ``dataset``: whose budget paid; ``name``: under which it was begun; ``table``: the table or
        view, where the source is a database; ``trust_view``: the data owner's word that each row of
        a view depends on its own person alone.
        """
        books, publication, terms = _known(ledger, dataset, name)
        opened = open_source(source, table, trust_view=trust_view)
        plan = checked_plan(terms.question(terms.due[0]), opened, None, len(terms.due))
        found = cls.__new__(cls)
        found._open(opened, terms, plan, books, publication)
        return found

    def _open(
        self,
        source: Source,
        terms: ScheduleTerms,
        plan: Plan,
        books: Publications,
        publication: Publication,
    ) -> None:
        self.terms = terms
        self.name = publication.name
        self.plan = plan
        """How the lists are drawn, and what they cost: public."""
        self._source = source
        self._books, self._publication = books, publication

    def __repr__(self) -> str:
        return f"Schedule({self.name!r} of dataset {self._publication.dataset!r})"

    def run(self, now: DayLike | datetime.datetime | None = None) -> PeriodList:
        """Draw every list that is due by now and was not drawn; show the one of the last period.

        The order of events for each: note that it begins, durably; read; draw; store; show.
        A period that was missed is drawn late, with the rows of its own time.
        """
        ended = self.terms.periods.ended(moment(now))
        known = self._books.periods(self._publication)
        for period in self.terms.due:
            if period <= ended and period not in known:
                self._draw(period)
        return self.shown(ended)

    def shown(self, period: int) -> PeriodList:
        """What is shown for a period: nothing is read but the ledger."""
        return shown_list(self._books, self._publication, self.terms, self.plan, period)

    def _draw(self, period: int) -> None:
        self._check_price()
        if self._books.begin(self._publication, period) is not None:
            return  # another program was quicker
        try:
            release, _ = drawn(self.terms.question(period), self.plan, self._source)
        except DataIndependentFailure:
            # Without the ledger it stays begun; the caller must hear of the first failure.
            with suppress(LedgerError):
                self._books.release(self._publication, period)
            raise
        except BaseException:
            with suppress(LedgerError):
                self._books.fail(self._publication, period)
            raise
        assert isinstance(release, Release)  # one list was asked for
        self._books.store(self._publication, period, to_record(release))

    def _check_price(self) -> None:
        """A later version may calibrate otherwise: never for more than was paid."""
        price = price_of_all(self.plan)
        worst = self._books.terms(self._publication).worst(price)
        if any(worst[name] > self._publication.cost.get(name, 0) for name in worst):
            raise InvalidParameter(
                f"the lists of {self.name!r} would cost more than was paid for them: this version "
                "of topsecret, or the source, is another; go on with the one that began it"
            )


def price_of_all(plan: Plan) -> Any:
    """What all lists cost, each in full."""
    from topsecret.ledger import Price

    each = plan.each
    return Price(price_of(each.selection, each.counts, plan.lists).loss)


def _paid(
    books: Publications,
    terms: ScheduleTerms,
    plan: Plan,
    dataset: str,
    name: str,
    analyst: str | None,
) -> Publication:
    from topsecret.ledger import Request

    record = terms.record()
    request = Request(
        dataset=dataset,
        price=price_of_all(plan),
        question={"name": name, **record},
        unit=terms.question().unit,
        analyst=analyst,
    )
    return books.open(request, name, record)


def first_day(
    start: DayLike | None, ledger: Ledger, dataset: str, name: str
) -> DayLike | datetime.date:
    """The day that was given, or that of the schedule as it was begun, or today."""
    from topsecret.ledger.publications import Publications

    if start is not None:
        return start
    known = Publications(ledger).find(dataset, name)
    return moment(None).date() if known is None else str(known.record.get("start"))


def _known(
    ledger: Ledger, dataset: str, name: str
) -> tuple[Publications, Publication, ScheduleTerms]:
    from topsecret.ledger.publications import Publications

    books = Publications(ledger)
    publication = books.find(dataset, name)
    if publication is None:
        raise InvalidParameter(
            f"dataset {dataset!r} has no schedule {name!r}; begin one with Schedule(…) or "
            "topsecret schedule start"
        )
    return books, publication, ScheduleTerms.of_record(publication.record)


def progress(ledger: Ledger, dataset: str, name: str) -> dict[str, Any]:
    """How far a schedule is, from the ledger alone."""
    books, publication, terms = _known(ledger, dataset, name)
    known = books.periods(publication)
    words = {"stored": "drawn", "begun": "under way or cut short", "failed": "failed"}
    lists = [
        {
            "period": period,
            "end": str(terms.periods.bounds(period)[1]),
            "state": words[known[period].state] if period in known else "to be drawn",
        }
        for period in terms.due
    ]
    return {"name": name, "periods": terms.periods.count, "lists": lists, **terms.periods.record()}


def write_off_list(ledger: Ledger, dataset: str, name: str, period: int) -> None:
    """Let a list that was cut short be drawn again, on the owner's word that nobody saw it."""
    books, publication, _ = _known(ledger, dataset, name)
    books.write_off(publication, period)


def shown_list(
    books: Publications,
    publication: Publication,
    terms: ScheduleTerms,
    plan: Plan,
    period: int,
) -> PeriodList:
    """The last list that was stored for a period or one before it."""
    if not 0 <= period <= terms.periods.count:
        raise InvalidParameter(
            f"period={period} must be one of the schedule's, from 0 to {terms.periods.count}"
        )
    known = books.periods(publication)
    stored = [p for p in known if p <= period and known[p].answer is not None]
    cut_short = tuple(p for p in known if p <= period and known[p].answer is None)
    last = max(stored, default=0)
    answer = known[last].answer if last else None
    start, end = terms.periods.bounds(period) if period else (None, None)
    lists = len(terms.due)
    paid = PaidInAdvance(
        "schedule", publication.name, publication.dataset, lists, plan.epsilon, plan.delta
    )
    return PeriodList(
        name=publication.name,
        period=period,
        periods=terms.periods.count,
        start=start,
        end=end,
        release=None if answer is None else replace(release_from(answer), paid_in_advance=paid),
        drawn_for=last,
        drawn_until=terms.periods.bounds(last)[1] if last else None,
        lists=lists,
        epsilon=plan.epsilon,
        delta=plan.delta,
        cut_short=cut_short,
    )
