"""What a series has shown so far, from the ledger alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topsecret.calibration.series import UNIT
from topsecret.errors import InvalidParameter
from topsecret.questions.series_terms import SeriesTerms
from topsecret.results.paid_in_advance import PaidInAdvance
from topsecret.results.period_list import PeriodList
from topsecret.results.record import release_from

if TYPE_CHECKING:
    from topsecret.ledger import Ledger
    from topsecret.ledger.publications import Publication, Publications


def known_series(
    ledger: Ledger, dataset: str, name: str
) -> tuple[Publications, Publication, SeriesTerms]:
    """A series that was begun, with its terms."""
    from topsecret.ledger.publications import Publications

    books = Publications(ledger)
    publication = books.find(dataset, name)
    if publication is None:
        raise InvalidParameter(
            f"dataset {dataset!r} has no series {name!r}; begin one with Series(…) or "
            "topsecret series start"
        )
    return books, publication, SeriesTerms.of_record(publication.record)


def shown_list(
    books: Publications, publication: Publication, terms: SeriesTerms, period: int
) -> PeriodList:
    """The last list that was stored for a period or one before it, with values and growth."""
    if not 0 <= period <= terms.periods.count:
        raise InvalidParameter(
            f"period={period} must be one of the series', from 0 to {terms.periods.count}"
        )
    known = books.periods(publication)
    stored = [p for p in sorted(known) if p <= period and known[p].answer is not None]
    last, before = ([0, 0, *stored])[-1], ([0, 0, *stored])[-2]
    answer = known[last].answer if last else None
    start, end = terms.periods.bounds(period) if period else (None, None)
    numbers = terms.numbers
    release = values = growth = None
    if answer is not None:
        epsilon, delta = terms.asked["epsilon"], terms.asked["delta"]
        paid = PaidInAdvance(
            "series", publication.name, publication.dataset, numbers.periods, epsilon, delta
        )
        release = replace(release_from(answer["release"]), paid_in_advance=paid)
        listed = answer["known"][: len(release.items)]
        values = tuple(value / UNIT for _, value in listed)
        earlier = known[before].answer if before else None
        if earlier is not None:
            then = dict(earlier["known"])
            growth = tuple(
                (value - then[label]) / UNIT if label in then else None for label, value in listed
            )
    return PeriodList(
        name=publication.name,
        period=period,
        periods=numbers.periods,
        start=start,
        end=end,
        release=release,
        drawn_for=last,
        drawn_until=terms.periods.bounds(last)[1] if last else None,
        lists=numbers.periods,
        epsilon=terms.asked["epsilon"],
        delta=terms.asked["delta"],
        publication="series",
        caveats=terms.caveats,
        values=values,
        deviation=numbers.deviation(last) if last else None,
        growth=growth,
        growth_deviation=numbers.growth_deviation(last, last - before) if growth else None,
    )


def progress(ledger: Ledger, dataset: str, name: str) -> dict[str, Any]:
    """How far a series is, from the ledger alone."""
    books, publication, terms = known_series(ledger, dataset, name)
    known = books.periods(publication)
    words = {"stored": "drawn", "begun": "under way or cut short"}
    lists = [
        {
            "period": period,
            "end": str(terms.periods.bounds(period)[1]),
            "state": words[known[period].state],
        }
        for period in sorted(known)
    ]
    return {"name": name, "periods": terms.periods.count, "lists": lists, **terms.periods.record()}
