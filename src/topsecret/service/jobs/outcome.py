"""What became of a question, as it is stored: in words that hold nothing of the data."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.results.group_releases import Releases
from topsecret.results.record import to_record
from topsecret.results.release import Release
from topsecret.service.jobs.job import ANSWERED, FAILED, REFUSED
from topsecret.service.jobs.release_schedule import CANCELLED, TIME_LIMIT
from topsecret.service.problems import Problem

UNREAD: dict[str, object] = {
    "state": REFUSED,
    "error": CANCELLED,
    "message": "The question was ended before its data were read. It cost nothing.",
}


def not_now(state: str) -> str:
    """Why nothing can be asked of a data set that is paused or retired."""
    return f"The owner has {state} this data set. Answers that there are can be looked at."


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
    words = f"The data could not be read. {paid} An owner finds the cause under the data set."
    return without(FAILED, "source_failed", words) | {"cause": str(error)}


def without(state: str, error: str, message: str) -> dict[str, object]:
    """An end without an answer."""
    return {"state": state, "error": error, "message": message}


def answered(answer: Release | Releases, asked: float, dataset: str) -> dict[str, object]:
    """An end with an answer: one list, or one for each group."""
    if isinstance(answer, Releases):
        shown = {group: _shown(one, asked, dataset) for group, one in answer.items()}
        answer = replace(answer, groups=shown)
    else:
        answer = _shown(answer, asked, dataset)
    text = json.dumps(to_record(answer))
    return {"state": ANSWERED, "answer": text, "error": None, "message": None}


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
