"""The secret counts of a question's lists, from whichever statements its measure needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from topsecret.counts.clip import Clip
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import Weights
from topsecret.errors import InvalidParameter
from topsecret.sources import CountQuery, Source

if TYPE_CHECKING:
    from topsecret.sources.session import Engine


@contextmanager
def counted(
    source: Source,
    queries: Sequence[CountQuery],
    count_persons: bool = False,
    weights: Weights | Clip | None = None,
    rises: bool = False,
) -> Iterator[tuple[list[Histogram], list[int] | None]]:
    """The secret counts of each list, of one moment of the data where the source can do that.

    With ``count_persons`` also how many persons each is of; with ``weights`` their sums, or those
    of parts, beside the counts; with ``rises`` the first counts less the second.
    """
    if weights is not None:
        from topsecret.counts.engine_table import GroupedTable, PersonsTable
        from topsecret.sources.domains.weighted_labels import weighted_labels

        table = weights.table if isinstance(weights, Weights) else weights
        with weighted_labels(engine_of(source), queries, table) as labels:
            tables = [(PersonsTable(one), GroupedTable(one)) for one in labels]
            yield [Histogram(persons, (weights, sums)) for persons, sums in tables], None
        return
    measure = queries[0].measure
    if measure is not None and measure.bounds:
        from topsecret.counts.scores_by_bound import ScoresKeptByEngine
        from topsecret.sources.domains.scores_by_bound import scores_by_bound

        with scores_by_bound(engine_of(source), queries) as found:
            kept = [ScoresKeptByEngine(one, measure.bounds, queries[0].rows) for one in found]
            yield [Histogram.by_bound(one) for one in kept], None
        return
    if rises and queries[0].domain is None:
        from topsecret.counts.two_periods import TwoPeriods
        from topsecret.sources.domains.rises import leading_rises

        with leading_rises(engine_of(source), queries) as (later, earlier):
            yield [Histogram(TwoPeriods(later, earlier, queries[0].rows))], None
        return
    total = measure is not None and measure.total > 0
    if queries[0].domain is not None or total:
        from topsecret.counts.engine_table import GroupedTable
        from topsecret.sources.domains.counted_domain import counted_domains
        from topsecret.sources.domains.rises import counted_rises

        counting = counted_rises if rises else counted_domains
        with counting(_engine(source, queries, count_persons), queries) as domains:
            everybody = [domain.persons() for domain in domains] if count_persons else None
            yield [Histogram(GroupedTable(domain)) for domain in domains], everybody
        return
    everybody = None
    if count_persons:
        from topsecret.sources.session import leading_counts_and_persons

        lists, everybody = leading_counts_and_persons(_engine(source, queries, True), queries)
    elif len(queries) == 1:
        lists = [source.leading_counts(queries[0])]
    else:
        from topsecret.sources.session import leading_counts_of

        lists = leading_counts_of(engine_of(source), queries)
    read = zip(lists, queries, strict=True)
    yield [Histogram.leading(rows, limit=query.rows) for rows, query in read], everybody


def _engine(source: Source, queries: Sequence[CountQuery], count_persons: bool) -> Engine:
    """The source as an engine, which reads its rows once where persons are counted, too."""
    from topsecret.sources.read_once import ReadOnce

    return ReadOnce(engine_of(source), queries) if count_persons else engine_of(source)


def engine_of(source: Source) -> Engine:
    """The source as an engine of ours, which can do more than rank."""
    from topsecret.sources.session import Engine

    if isinstance(source, Engine):
        return source
    raise InvalidParameter(
        f"{source.name} counts leading items only; a public domain, groups or a bound that is "
        "chosen privately need a file, a database or a data frame"
    )
