"""Questions in SQL: what they ask, by public rules, and how they are answered.

A query reads the dataset's own file or table and of it the columns that may be asked and those
that rows may be chosen by. It goes the way of every other question.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topsecret.errors import InvalidParameter, SourceError
from topsecret.questions.answer import answer
from topsecret.questions.sql import cut_by_counts, question_of
from topsecret.questions.top_k import purse_of
from topsecret.results.release import Release
from topsecret.service.jobs.job import Asked
from topsecret.service.preview import LARGEST_K, smaller_cap
from topsecret.service.problems import Problem
from topsecret.service.ranked_by import RankedBy
from topsecret.sources.relations.open_query import open_query, smallest_query
from topsecret.sources.relations.privacy_file import PrivacyFile

if TYPE_CHECKING:
    from topsecret.ledger import Ledger
    from topsecret.service.datasets import Dataset, Datasets
    from topsecret.sources.relations.query_source import QuerySource
    from topsecret.sources.relations.ranked_query import RankedQuery


NOT_IN_SQL = "The owner does not let this dataset be asked in SQL."


def asked_in_sql(datasets: Datasets, dataset: Dataset, query: str, epsilon: float | None) -> Asked:
    """The question that a query asks; a refusal names the clause. No row is read."""
    if not dataset.sql:
        raise Problem(400, "invalid", NOT_IN_SQL)
    failed = False
    try:
        opened, found = _opened(datasets, dataset, query)
    except SourceError:
        failed = True
    if failed:
        raise Problem(503, "source_failed", "The data cannot be opened. Nothing was charged.")
    counts = found.counts and found.k != "all"
    least = found.at_least if found.k == "all" else None
    item = ", ".join(opened.titles)[:200]
    by = None
    if found.bound is not None and found.measure != "persons":
        by = RankedBy(opened.amount or None, found.bound.unit, (found.bound.most,))
    return Asked(item, found.k, epsilon, (), counts, least, query, by, None, found.max_items)


def check_that_it_can_be_asked(datasets: Datasets, dataset: Dataset) -> None:
    """Refuse what every query would be refused about: views, JSON lines. No row is read."""
    for column in dataset.columns:
        with suppress(InvalidParameter, SourceError):
            named = dataset.table or "data"  # a file has whatever name a query gives it
            _opened(datasets, dataset, smallest_query(named, column, dataset.person))
            return
    if dataset.table is None:
        raise InvalidParameter(
            "no query in SQL can be about this file; JSON lines name their fields line by line: "
            "take CSV or Parquet, or leave out SQL"
        )
    raise InvalidParameter(
        "no query in SQL can be about this table; it must be an ordinary one of PostgreSQL or "
        "SQLite, not a view: name the table that it is made of, or leave out SQL"
    )


def answered_in_sql(
    datasets: Datasets, dataset: Dataset, asked: Asked, ledger: Ledger, analyst: str, request: str
) -> Release:
    """The answer, paid for like any other."""
    opened, found = _opened(datasets, dataset, asked.query or "")
    found = replace(found, max_items=smaller_cap(dataset.cap, found.max_items))
    pays = purse_of(ledger, dataset.name, analyst, request)
    more: dict[str, Any] = {"version": dataset.version} if dataset.version is not None else {}
    if asked.epsilon is not None:
        more |= {"epsilon": asked.epsilon, "delta": dataset.delta_of(asked)}
    release = cut_by_counts(
        answer(question_of(opened, found, pays.terms, **more), opened, pays), found
    )
    assert isinstance(release, Release)  # groups are refused
    return release


def _opened(datasets: Datasets, dataset: Dataset, query: str) -> tuple[QuerySource, RankedQuery]:
    source, named = datasets.events(dataset)
    file = None if named is None else PrivacyFile.of_one_table(named, dataset.person)
    opened, found = open_query(
        query,
        source,
        privacy=file,
        person=dataset.person if file is None else None,
        only={dataset.person, *dataset.columns, *dataset.filters},
    )
    words = ""
    if found.by is not None:
        words = "A list for each group is not answered here; ask for one list."
    elif found.epsilon is not None or found.delta is not None:
        words = "Epsilon stands beside the query here, and delta is the owner's; leave them out."
    elif isinstance(found.k, int) and found.k > LARGEST_K:
        words = f"LIMIT must be at most {LARGEST_K}."
    if words:
        raise Problem(400, "invalid", words)
    return opened, found
