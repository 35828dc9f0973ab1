"""A question put to the library, and what became of it, as it is stored.

Its words hold nothing of the data.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.questions.top_k import top_k, top_k_by
from topsecret.results.group_releases import Releases
from topsecret.results.record import to_record
from topsecret.results.release import Release
from topsecret.service.filters import conditions
from topsecret.service.jobs.job import ANSWERED, FAILED, IN_DOUBT, REFUSED
from topsecret.service.jobs.release_schedule import CANCELLED, TIME_LIMIT
from topsecret.service.pasted_sql import answered_in_sql
from topsecret.service.problems import Problem

if TYPE_CHECKING:
    from topsecret.ledger import Ledger
    from topsecret.service.datasets import Dataset, Datasets
    from topsecret.service.jobs.job import Asked

UNREAD: dict[str, object] = {
    "state": REFUSED,
    "error": CANCELLED,
    "message": "The question was ended before its data were read. It cost nothing.",
}
IN_THE_DARK: dict[str, object] = {
    "state": IN_DOUBT,
    "error": "in_doubt",
    "message": "This question was cut short and it is unknown whether it was answered. "
    "What it may cost stays reserved; the owner can write it off.",
}
WRITTEN_OFF: dict[str, object] = {
    "state": FAILED,
    "error": "written_off",
    "message": "An owner wrote this question off while it was under way. Nothing was charged, and "
    "its answer is not shown; ask again under a new request id.",
}


def not_now(state: str) -> str:
    """Why nothing can be asked of a dataset that is paused or retired."""
    return f"The owner has {state} this dataset. Answers that there are can be looked at."


def no_such_answer() -> Problem:
    """There is none, or none for this account: they must look alike."""
    return Problem(404, "not_found", "there is no such answer for you")


def failure(error: SourceError, why: str, limit: float) -> dict[str, object]:
    """How a question ended whose data could not be read, for its analyst and, why, for the owners.

    Our errors' texts hold nothing of the data, but they name files and tables.
    """
    free = isinstance(error, DataIndependentFailure)
    paid = "Nothing was charged." if free else "What it may cost stays charged."
    if why == TIME_LIMIT:
        words = f"Counting took longer than the {limit:g} s that a question may take. {paid}"
        return without(FAILED, TIME_LIMIT, words) | {"cause": "the time limit"}
    if why == CANCELLED:
        return without(FAILED, CANCELLED, f"The question was ended while counting. {paid}")
    words = f"The data could not be read. {paid} An owner finds the cause under the dataset."
    return without(FAILED, "source_failed", words) | {"cause": str(error)}


def without(state: str, error: str, message: str) -> dict[str, object]:
    """An end without an answer."""
    return {"state": state, "error": error, "message": message}


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
        "where": conditions(asked.where, dataset.filters) if asked.where else (),
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
        more |= {"epsilon": asked.epsilon, "delta": dataset.delta_of(asked)}
    if asked.grouped_by is None:
        return top_k(source, **more)
    groups = asked.grouped_by.groups(dataset.filters)
    shown = {"by": groups.by, "groups": groups.values, "disjoint": groups.disjoint}
    return top_k_by(source, **shown, **more)  # type: ignore[arg-type]  # as they were checked


def answered(answer: Release | Releases, asked: float, dataset: str) -> dict[str, object]:
    """An end with an answer: one list, or one for each group."""
    if isinstance(answer, Releases):
        shown = {group: _shown(one, asked, dataset) for group, one in answer.items()}
        answer = replace(answer, groups=shown)
    else:
        answer = _shown(answer, asked, dataset)
    text, (entry, _) = json.dumps(to_record(answer)), ledger_entry(answer)
    return {"state": ANSWERED, "answer": text, "error": None, "message": None, "entry": entry}


def ledger_entry(answer: Release | Releases) -> tuple[int | None, bool]:
    """Where the ledger has an answer, and whether it had it before; lists of groups are one."""
    one = next(iter(answer.values())) if isinstance(answer, Releases) else answer
    return (None, False) if one.charge is None else (one.charge.entry, one.charge.stored)


def _shown(release: Release, asked: float, dataset: str) -> Release:
    """The answer with a time that tells neither how long the engine counted nor who asked before.

    The time of a stored answer is that of the question for which it was drawn.
    """
    time = datetime.fromtimestamp(asked, UTC)
    if release.charge is not None and release.charge.stored:
        time = release.time.replace(second=0, microsecond=0)
    # Where the events are is the ledger's and the owner's business, not the answer's.
    assumes = tuple(one.replace(release.source, dataset) for one in release.assumes)
    return replace(release, time=time, source=dataset, assumes=assumes)
