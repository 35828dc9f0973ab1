"""Paste the query that you have: the same list, with differential privacy.

The text is read, checked and built anew (``topsecret.sources.relations``); what it asks becomes a
question like any other and goes the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number
from topsecret.questions.answer import Answer, answer
from topsecret.questions.question import Groups, Question
from topsecret.questions.top_k import purse_of
from topsecret.results.release import Release
from topsecret.sources.measures import Amount, Bound, Sum

if TYPE_CHECKING:
    from topsecret.ledger import Flexible, Ledger, Metered
    from topsecret.sources.open_source import SourceLike
    from topsecret.sources.relations.open_query import Privacy
    from topsecret.sources.relations.query_source import QuerySource
    from topsecret.sources.relations.ranked_query import RankedQuery


def sql(
    query: str,
    source: SourceLike,
    *,
    privacy: Privacy | None = None,
    person: str | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    dialect: str | None = None,
    max_per_item: Amount | None = None,
    unit: Amount = 1,
    mechanism: str = "auto",
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
    version: str | None = None,
) -> Answer:
    """Answer an SQL query that ranks items by their number of people, by rows or by a sum.

    The query ``SELECT place, COUNT(DISTINCT user_id) AS n FROM checkins GROUP BY place`` with
    ``ORDER BY n DESC LIMIT 10`` names ten places, and shows noisy counts because it asks for
    ``n``. Joins, WITH, sub-queries and views are allowed as long as each row stays one person's;
    the refusal of anything else names the clause and what to write instead.

    ``source`` is a database's URL or engine, a DuckDB file or connection, or a file or data frame
    of rows, which is one table whatever the query calls it. ``privacy`` is a privacy file, which
    says whose rows each table holds; ``person`` alone names the person's column of the one table
    that the query reads. ``dialect`` is that of the text, the engine's own unless given. BigQuery's
    WITH DIFFERENTIAL_PRIVACY OPTIONS(…) may set epsilon, delta and max_groups_contributed.
    COUNT(*) ranks by rows and SUM(price) by a sum, rounded to multiples of ``unit``, where
    ``max_per_item`` bounds what one person adds to one item; the query's own options and the
    privacy file may have that bound, too.

    Parameters: ``query``: the query's text; ``source``: the database, file or data frame that it
    reads; ``privacy``: the privacy file, or its path: whose rows each table holds; ``person``: the
    person's column, where the query reads one table; ``epsilon``: how much one person may change
    the chance of any answer; ``delta``: a probability that is added to what epsilon allows: as
    given, here or in the query, else 1e-6, or a flexible budget's part where that is less;
    ``dialect``: the SQL dialect of the text; the engine's own unless given;
    ``max_per_item``: the most that one person adds to one item, by rows or sums;
    ``unit``: what sums are rounded to multiples of; ``mechanism``: the algorithm by name;
    ``ledger``: the ledger that pays; without one nothing is recorded; ``dataset``: whose budget in
    the ledger pays; ``analyst``: in whose name it is asked, where the budget has allowances;
    ``request_id``: a name of your choice that makes it safe to repeat a call; ``version``: which
    data it is about, in your words, for a ledger.

    *Guarantee.* As for ``top_k``: one person with all their rows in all tables, as the privacy file
    assigns them, is protected with (``epsilon``, ``delta``).
    """
    from topsecret.sources.relations.open_query import open_query

    opened, asked = open_query(
        query,
        source,
        privacy=privacy,
        person=person,
        dialect=dialect,
        bounded=max_per_item is not None,
    )
    pays = purse_of(ledger, dataset, analyst, request_id)
    question = question_of(
        opened,
        asked,
        pays.terms,
        bound=_bound(max_per_item, unit),
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        version=version,
    )
    return cut_by_counts(answer(question, opened, pays), asked)


def question_of(
    opened: QuerySource,
    asked: RankedQuery,
    terms: Metered | Flexible | None = None,
    *,
    bound: Bound | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    **more: Any,
) -> Question:
    """The question that a query asks, as ``top_k`` and ``top_k_by`` would ask it."""
    items = [title for place, title in enumerate(opened.titles) if place != asked.by]
    bound = bound or asked.bound
    unit = "1" if bound is None else bound.unit
    if unit != "1" and asked.measure != "sum":
        raise InvalidParameter(f"unit={unit} rounds what is summed; leave it out, or write SUM")
    return Question.of(
        terms,
        None if asked.by is None else Groups(opened.titles[asked.by], asked.groups),
        item=items[0] if len(items) == 1 else tuple(items),
        person=opened.person,
        k=asked.k,
        # All items of at least N people come with numbers of their own.
        counts=asked.counts and asked.k != "all",
        at_least=asked.at_least if asked.k == "all" else None,
        max_items=asked.max_items,
        domain=opened.domain,
        measure=Sum(opened.amount, unit) if asked.measure == "sum" else asked.measure,
        max_per_item=None if bound is None else bound.most,
        order="least" if asked.smallest else "most",
        epsilon=_given("epsilon", epsilon, asked.epsilon),
        delta=_given("delta", delta, asked.delta),
        **more,
    )


def explain(
    query: str,
    source: SourceLike,
    *,
    privacy: Privacy | None = None,
    person: str | None = None,
    dialect: str | None = None,
    max_per_item: Amount | None = None,
    unit: Amount = 1,
) -> Mapping[str, object]:
    """What a query asks and the statement that an engine would count, without reading a row.

    Parameters: those of ``sql``.
    """
    from topsecret.sources.relations.open_query import open_query

    opened, asked = open_query(
        query,
        source,
        privacy=privacy,
        person=person,
        dialect=dialect,
        bounded=max_per_item is not None,
    )
    bound = _bound(max_per_item, unit) or asked.bound
    return {
        "items": list(opened.titles),
        "measure": asked.measure if asked.amount is None else f"sum of {opened.amount}",
        "max_per_item": None if bound is None else bound.most,
        "unit": bound.unit if bound is not None and asked.amount is not None else None,
        "k": asked.k,
        "order": "least" if asked.smallest else "most",
        "counts": asked.counts,
        "at_least": asked.at_least,
        "by": None if asked.by is None else opened.titles[asked.by],
        "groups": list(asked.groups),
        "max_items": asked.max_items,
        "domain": None if opened.domain is None else opened.domain.described,
        "rows": opened.shown(),
    }


def _bound(most: Amount | None, unit: Amount) -> Bound | None:
    if most is not None:
        return Bound(str(most), str(unit))
    if str(unit) != "1":
        raise InvalidParameter(f"unit={unit} rounds what is summed; pass max_per_item with it")
    return None


def _given(name: str, outside: Number | None, inside: str | None) -> Any:
    if inside is None:
        return outside
    if outside is not None:
        raise InvalidParameter(f"{name} is given twice, in the query and beside it; leave one out")
    try:
        return float(inside)
    except ValueError:
        raise InvalidParameter(f"{name} in OPTIONS(…) must be a number") from None


def cut_by_counts(result: Answer, asked: RankedQuery) -> Answer:
    """HAVING n >= N beside LIMIT: by the noisy counts, which costs nothing more."""
    if asked.at_least is None:
        return result
    if not isinstance(result, Release):
        lists = {group: _cut_list(one, asked.at_least) for group, one in result.groups.items()}
        return replace(result, groups=lists)
    return _cut_list(result, asked.at_least)


def _cut_list(result: Release, least: int) -> Release:
    if result.counts is None:
        return result
    kept = [place for place, count in enumerate(result.counts) if count >= least]
    more: dict[str, Any] = {
        name: tuple(values[place] for place in kept)
        for name in ("items", "counts", "weighted", "at_least")
        if (values := getattr(result, name)) is not None
    }
    told = f"{result.ending} Shown are the items whose noisy count is at least {least}."
    return replace(result, **more, told=told)
