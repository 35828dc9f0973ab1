"""Ask for the most common items of a file: the one place where source and mechanism meet.

The order of events is fixed: check the public parameters, calibrate the mechanism to the budget,
ask the source for the leading counts, select, and make the release. Everything that can be wrong
with the parameters is found before the data are touched.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Literal

from topsecret.errors import InvalidParameter
from topsecret.release import Release
from topsecret.rounding import Number
from topsecret.sources import CountQuery, Source
from topsecret.unit import PrivacyUnit


def top_k(
    source: str | os.PathLike[str] | Source,
    *,
    item: str,
    person: str,
    k: int | Literal["auto"],
    epsilon: Number,
    delta: Number = 1e-6,
    k_bar: int | None = None,
    mechanism: str = "auto",
) -> Release:
    """Name the ``k`` items with the most distinct persons, with differential privacy.

    ``source`` is a file with one row per event (CSV, TSV, JSON lines or Parquet), ``item`` the
    column to rank, ``person`` the column that tells persons apart. ``k_bar`` is how many leading
    items may be looked at, ``20 * k`` by default. ``k="auto"`` names as many items as the counts
    set apart clearly, as a set. ``mechanism="auto"`` follows the public rule of ``plan``, which
    looks at the numbers given here and never at the data.

    *Guarantee.* The returned items and how the list ended are together
    (``epsilon``, ``delta``)-differentially private under adding or removing one person with all
    their rows, however many. The release states what is proven, never more than was asked for.
    """
    from topsecret.catalogue import Question, prepare

    unit = PrivacyUnit(person=person)
    question = Question.of(k=k, epsilon=epsilon, delta=delta, k_bar=k_bar, max_items=unit.max_items)
    query = CountQuery(item=item, person=unit.person, rows=question.k_bar + 1)
    opened = _open(source)
    if mechanism == "auto":
        from topsecret.planning.rule import recommend

        mechanism = recommend(question).name
    prepared = prepare(mechanism, question)
    loss = prepared.mechanism.loss

    from topsecret.histogram import Histogram

    counts = Histogram.leading(opened.leading_counts(query), limit=query.rows)
    selection = prepared.mechanism.select(counts)
    return Release(
        items=selection.items,
        complete=selection.complete and (k == "auto" or len(selection.items) == question.k),
        ordered=selection.ordered,
        k=question.k,
        epsilon=loss.epsilon(question.delta),
        delta=question.delta,
        mechanism=mechanism,
        parameters=prepared.parameters,
        bound=loss.bound_used(question.delta),
        threshold=prepared.named_when,
        unit=unit,
        source=opened.name,
        item=item,
        version=_version(),
        time=datetime.now(UTC),
        chosen=selection.chosen,
        told=prepared.told(selection),
    )


def _open(source: str | os.PathLike[str] | Source) -> Source:
    if isinstance(source, str | os.PathLike):
        from topsecret.sources.duckdb import FileSource

        return FileSource(source)
    if isinstance(source, Source):
        return source
    if any(kind.__module__.startswith("pyspark.") for kind in type(source).__mro__):
        from topsecret.sources.spark import SparkSource

        return SparkSource(source)
    raise InvalidParameter(
        f"source must be the path of a file or a source; found a {type(source).__name__}"
    )


def _version() -> str:
    from topsecret import __version__

    return __version__
