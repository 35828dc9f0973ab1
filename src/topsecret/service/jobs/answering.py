"""A question of the service put to the library: one list, one for each group, or a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topsecret.questions.top_k import top_k, top_k_by
from topsecret.service.filters import conditions
from topsecret.service.pasted_sql import answered_in_sql

if TYPE_CHECKING:
    from topsecret.ledger import Ledger
    from topsecret.results.group_releases import Releases
    from topsecret.results.release import Release
    from topsecret.service.datasets import Dataset, Datasets
    from topsecret.service.jobs.job import Asked


def released(
    datasets: Datasets, dataset: Dataset, asked: Asked, ledger: Ledger, analyst: str, request: str
) -> Release | Releases:
    """The answer, paid for from the analyst's share."""
    if asked.query is not None:
        return answered_in_sql(datasets, dataset, asked, ledger, analyst, request)
    source, table = datasets.events(dataset)
    more: dict[str, Any] = {
        "item": asked.column,
        "person": dataset.person,
        "k": asked.k,
        "max_items": dataset.cap,
        "table": table,
        "where": conditions(asked.where, dataset.filters),
        "counts": asked.counts,
        "at_least": asked.at_least,
        "ledger": ledger,
        "dataset": dataset.name,
        "analyst": analyst,
        "request_id": request,
    }
    more |= {} if asked.ranked_by is None else asked.ranked_by.keywords
    more |= {"trust_view": True} if dataset.trust_view else {}
    if dataset.version is not None:
        more["version"] = dataset.version
    if asked.epsilon is not None:
        more |= {"epsilon": asked.epsilon, "delta": dataset.delta_of(asked.epsilon)}
    if asked.grouped_by is None:
        return top_k(source, **more)
    groups = asked.grouped_by.groups(dataset.filters)
    shown = {"by": groups.by, "groups": groups.values, "disjoint": groups.disjoint}
    return top_k_by(source, **shown, **more)  # type: ignore[arg-type]  # as they were checked
