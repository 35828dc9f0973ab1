"""Questions as jobs: asked once, run once, left and found again, shown at ticks.

A job is stored before it runs. Whichever process ends it asks ``top_k`` with the job's request
id, so that a job taken over from a dead process finds the answer that was settled, or learns that
its reservation is in doubt, or pays for the first time: never twice, never with other noise.

*Time.* How long an engine counts depends on the data. The end of a job, good or bad, reaches the
ledger and is shown only a whole number of ticks after the question (``release_schedule``),
and there is nothing in between to watch: no refund, no room for another question, no message.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import RowMapping, and_, delete, func, or_, select, update

from topsecret.errors import (
    BudgetExceeded,
    Closing,
    DataIndependentFailure,
    InDoubt,
    InvalidParameter,
    LedgerError,
    SourceError,
    Taken,
    TopSecretError,
)
from topsecret.ledger import Ledger
from topsecret.ledger.store import Store
from topsecret.questions.top_k import top_k
from topsecret.results.record import release_from, to_record
from topsecret.results.release import Release
from topsecret.service.datasets import Dataset, Datasets
from topsecret.service.filters import conditions
from topsecret.service.jobs.job import ANSWERED, FAILED, IN_DOUBT, REFUSED, WORKING, Asked, Job
from topsecret.service.jobs.release_schedule import CANCELLED, TIME_LIMIT, Turn, Turns
from topsecret.service.pasted_sql import answered_in_sql
from topsecret.service.problems import Problem
from topsecret.service.schema import JOBS
from topsecret.service.shares import refusal
from topsecret.service.table_versions import version_asked

_AT_ONCE = 100
"""How many jobs one account may have under way."""


class Jobs:
    """All jobs, in the store. Every method may block: call it from a thread."""

    def __init__(self, store: Store, ledger: Ledger, datasets: Datasets, turns: Turns) -> None:
        self._store, self._ledger, self._datasets = store, ledger, datasets
        self._turns = turns
        self._under_way: dict[str, Turn] = {}
        self.failed: Callable[..., None] = lambda **_: None
        """Told of a question whose data could not be read: public words alone."""

    def ask(
        self,
        user: str,
        dataset: str,
        asked: Asked,
        request: str | None,
        worker: str,
        held: str | None = None,
    ) -> tuple[Job, bool]:
        """The job for a question, perhaps paid from what is held, and whether it is new."""
        request = request or secrets.token_hex(12)
        question = asked.to_text()
        values = {
            "id": secrets.token_urlsafe(12),
            "user": user,
            "dataset": dataset,
            "request": request,
            "question": question,
            "state": WORKING,
            "asked": time.time(),
            "worker": worker,
            "held": held,
        }
        mine = (JOBS.c.user == user, JOBS.c.dataset == dataset, JOBS.c.request == request)
        new = True
        try:
            with self._store.writing() as connection:
                # As it is shown: the true state would tell when an engine was done.
                unseen = or_(JOBS.c.shown.is_(None), JOBS.c.shown > values["asked"])
                busy = select(JOBS.c.id).where(JOBS.c.user == user, unseen)
                if len(connection.execute(busy.limit(_AT_ONCE)).all()) >= _AT_ONCE:
                    raise Problem(
                        429,
                        "too_many",
                        f"{_AT_ONCE} questions of yours are under way; wait for some",
                    )
                connection.execute(JOBS.insert().values(values))
        except Taken:
            new = False
        with self._store.reading() as connection:
            row = connection.execute(select(JOBS).where(*mine)).mappings().one()
        if row["question"] != question:
            raise Problem(
                409,
                "request_id_used",
                "this request id was used for another question; choose a new request id",
            )
        return self._seen(row), new

    def find(self, identity: str) -> Job:
        """One job as it may be shown now."""
        query = select(JOBS).where(JOBS.c.id == identity)
        with self._store.reading() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise no_such_answer()
        return self._seen(row)

    def history(
        self,
        user: str | None,
        dataset: str | None = None,
        most: int = 100,
        before: str | None = None,
    ) -> list[Job]:
        """The latest jobs, or the latest before one of them, newest first."""
        query = select(JOBS).order_by(JOBS.c.asked.desc(), JOBS.c.id.desc()).limit(most)
        if before is not None:
            found = self.find(before)
            at = select(JOBS.c.asked).where(JOBS.c.id == found.id).scalar_subquery()
            same = and_(JOBS.c.asked == at, JOBS.c.id < found.id)
            query = query.where(or_(JOBS.c.asked < at, same))
        if user is not None:
            query = query.where(JOBS.c.user == user)
        if dataset is not None:
            query = query.where(JOBS.c.dataset == dataset)
        with self._store.reading() as connection:
            return [self._seen(row) for row in connection.execute(query).mappings()]

    def run(self, identity: str) -> str:
        """Answer a job and store what became of it; its state."""
        with self._store.reading() as connection:
            row = connection.execute(select(JOBS).where(JOBS.c.id == identity)).mappings().one()
        if row["state"] not in (WORKING, IN_DOUBT):
            return str(row["state"])
        if row["cancelled"] is not None:
            return self._unread(row)
        self._turns.begin(row["asked"])
        turn = Turn(self._turns, row["asked"], row["user"])
        self._under_way[identity] = turn
        try:
            with turn, turn.stop.here():
                return self._run(row, turn)
        except Closing:
            if not turn.stop.asked.is_set():
                raise
            return self._unread(row)
        finally:
            self._under_way.pop(identity, None)

    def _unread(self, row: RowMapping) -> str:
        """A question that was ended before its data were read, unless an earlier try had begun."""
        if self._ledger.requested(row["dataset"], row["user"], row["request"]):
            wanted = update(JOBS).where(JOBS.c.id == row["id"]).values(cancelled=None)
            with self._store.writing() as connection:
                connection.execute(wanted)
            return self.run(row["id"])  # finds whatever the ledger has of it
        shown = self._turns.next_tick(row["asked"])
        return self._store_end(row, _UNREAD | {"shown": shown})

    def watch(self, cancelled: Collection[str] = ()) -> None:
        """End what has taken too long or is no longer wanted."""
        for identity, turn in list(self._under_way.items()):
            if identity in cancelled:
                turn.cancel()
            turn.look_at_the_clock()

    def cancelled(self, worker: str) -> set[str]:
        """The questions of a worker that somebody has ended."""
        mine = (JOBS.c.state == WORKING, JOBS.c.worker == worker, JOBS.c.cancelled.is_not(None))
        with self._store.reading() as connection:
            return set(connection.execute(select(JOBS.c.id).where(*mine)).scalars())

    def cancel(self, identity: str) -> Job:
        """End a question that is under way; one that has ended stays as it is."""
        found = self.find(identity)
        with self._store.writing() as connection:
            connection.execute(
                update(JOBS)
                .where(JOBS.c.id == identity, JOBS.c.state == WORKING)
                .values(cancelled=time.time())
            )
        self.watch({identity})
        return found

    def under_way(self) -> int:
        """How many questions have no end yet that is shown."""
        unseen = or_(JOBS.c.shown.is_(None), JOBS.c.shown > time.time())
        query = select(func.count()).select_from(JOBS).where(unseen)
        with self._store.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def forget(self, days: float) -> int:
        """Delete the questions that ended so long ago; what the ledger has of them stays."""
        ended = JOBS.c.state.not_in((WORKING, IN_DOUBT))
        old = JOBS.c.asked < time.time() - 86400 * days
        with self._store.writing() as connection:
            return connection.execute(delete(JOBS).where(ended, old)).rowcount

    def cancel_all(self, user: str) -> None:
        """End everything that an account has under way."""
        mine = (JOBS.c.user == user, JOBS.c.state == WORKING)
        with self._store.writing() as connection:
            ended = set(connection.execute(select(JOBS.c.id).where(*mine)).scalars())
            connection.execute(update(JOBS).where(*mine).values(cancelled=time.time()))
        self.watch(ended)

    def _run(self, row: RowMapping, turn: Turn) -> str:
        ended = self._ended(row, self._ledger.paced(turn).paying_from(row["held"]), turn)
        ended |= {"shown": turn.shown or self._turns.next_tick(row["asked"])}
        return self._store_end(row, ended)

    def _store_end(self, row: RowMapping, ended: dict[str, object]) -> str:
        with self._store.writing() as connection:
            connection.execute(
                update(JOBS)
                .where(JOBS.c.id == row["id"], JOBS.c.state.in_((WORKING, IN_DOUBT)))
                .values(ended)
            )
        return str(ended["state"])

    def take_over(self, worker: str, living: Collection[str]) -> list[tuple[str, str]]:
        """The jobs that no living process has, now this one's, and whose they are."""
        with self._store.writing() as connection:
            query = select(JOBS.c.id, JOBS.c.user, JOBS.c.worker).where(JOBS.c.state == WORKING)
            rows = connection.execute(query.order_by(JOBS.c.asked))
            lost = [(row.id, row.user) for row in rows if row.worker not in living]
            for identity, _ in lost:
                mine = update(JOBS).where(JOBS.c.id == identity).values(worker=worker)
                connection.execute(mine)
        return lost

    def _ended(self, row: RowMapping, ledger: Ledger, turn: Turn) -> dict[str, object]:
        """Ask, and put the outcome into words that hold nothing of the data."""
        asked = Asked.from_text(row["question"])
        try:
            dataset = self._datasets.get(row["dataset"])
            begun = partial(self._ledger.requested, dataset.name, row["user"], row["request"])
            if dataset.state is not None and not begun():
                return _without(REFUSED, dataset.state, not_now(dataset.state))
            if dataset.table is not None:
                dataset = self._at_version(dataset, row, turn)
            if asked.query is not None:
                whose = (row["user"], row["request"])
                release = answered_in_sql(self._datasets, dataset, asked, ledger, *whose)
                return _answered(release, row["asked"], dataset.name)
            source, table = self._datasets.events(dataset)
            more: dict[str, Any] = {"max_items": dataset.cap, "table": table}
            more |= {"where": conditions(asked.where, dataset.filters), "counts": asked.counts}
            more |= {"at_least": asked.at_least}
            more |= {} if asked.ranked_by is None else asked.ranked_by.keywords
            more |= {"trust_view": True} if dataset.trust_view else {}
            if dataset.version is not None:
                more["version"] = dataset.version
            if asked.epsilon is not None:
                more |= {"epsilon": asked.epsilon, "delta": dataset.delta_of(asked.epsilon)}
            release = top_k(
                source,
                item=asked.column,
                person=dataset.person,
                k=asked.k,
                ledger=ledger,
                dataset=dataset.name,
                analyst=row["user"],
                request_id=row["request"],
                **more,
            )
        except BudgetExceeded as error:
            account = self._ledger.account(row["dataset"])
            share = self._datasets.allowance(row["dataset"], row["user"])
            words = refusal(error, account, share, asked.epsilon)
            return _without(REFUSED, "budget_exceeded", words)
        except InDoubt:
            return _without(
                IN_DOUBT,
                "in_doubt",
                "This question was cut short and it is unknown whether it was answered. "
                "What it may cost stays reserved; the owner can write it off.",
            )
        except InvalidParameter as error:
            if self._ledger.requested(row["dataset"], row["user"], row["request"]):
                # A process died after the ledger heard of the end, before it was stored here; or
                # the data set was pointed to other events since.
                words = (
                    "This question was cut short, or its data set is about other events by now. "
                    "What it may cost stays charged."
                )
                return _without(FAILED, "failed", words)
            return _without(REFUSED, "refused", str(error))
        except Closing:
            raise
        except SourceError as error:
            ended = failure(error, turn.stop.why, self._turns.limit)
            charged = not isinstance(error, DataIndependentFailure)
            what = {"job": row["id"], "dataset": row["dataset"], "error": ended["error"]}
            self.failed(**what, kind=type(error).__name__, charged=charged)
            return ended
        except LedgerError:
            raise  # the job stays, and is tried again when the ledger is back
        except TopSecretError:
            return _without(FAILED, "failed", "The question could not be answered.")
        return _answered(release, row["asked"], dataset.name)

    def _at_version(self, dataset: Dataset, row: RowMapping, turn: Turn) -> Dataset:
        """The data set with its table's version, which stays what it was when a question began."""
        begun = self._ledger.asked(dataset.name, row["user"], row["request"])
        if begun is not None:  # also where the job was forgotten since
            return replace(dataset, version=version_asked(begun))
        if dataset.version_from is not None:
            with turn.aside():
                dataset = self._datasets.at_its_version(dataset)
        return dataset

    def _seen(self, row: RowMapping) -> Job:
        ended = row["shown"] is not None and row["shown"] <= time.time()
        release = None
        if ended and row["answer"] is not None:
            release = release_from(json.loads(row["answer"]))
        return Job(
            row["id"],
            row["user"],
            row["dataset"],
            row["request"],
            Asked.from_text(row["question"]),
            row["state"] if ended else WORKING,
            datetime.fromtimestamp(row["asked"], UTC),
            row["error"] if ended else None,
            row["message"] if ended else None,
            release,
            row["cause"] if ended else None,
        )


def not_now(state: str) -> str:
    """Why nothing can be asked of a data set that is paused or retired."""
    return f"The owner has {state} this data set. Answers that there are can be looked at."


def no_such_answer() -> Problem:
    """There is none, or none for this account: they must look alike."""
    return Problem(404, "not_found", "there is no such answer for you")


_UNREAD: dict[str, object] = {
    "state": REFUSED,
    "error": CANCELLED,
    "message": "The question was ended before its data were read. It cost nothing.",
}


def failure(error: SourceError, why: str, limit: float) -> dict[str, object]:
    """How a question ended whose data could not be read, for its analyst and, why, for the owners.

    Our errors' texts hold nothing of the data, but they name files and tables.
    """
    free = isinstance(error, DataIndependentFailure)
    paid = "Nothing was charged." if free else "What it may cost stays charged."
    if why == TIME_LIMIT:
        words = f"Counting took longer than the {limit:g} s that a question may take. {paid}"
        return _without(FAILED, TIME_LIMIT, words) | {"cause": "the time limit"}
    if why == CANCELLED:
        return _without(FAILED, CANCELLED, f"The question was ended while counting. {paid}")
    words = f"The data could not be read. {paid} An owner finds the cause under the data set."
    return _without(FAILED, "source_failed", words) | {"cause": str(error)}


def _without(state: str, error: str, message: str) -> dict[str, object]:
    return {"state": state, "error": error, "message": message}


def _answered(release: Release, asked: float, dataset: str) -> dict[str, object]:
    # Where the events are is the ledger's and the owner's business, not the answer's.
    release = replace(_timed(release, asked), source=dataset)
    answer = json.dumps(to_record(release))
    return {"state": ANSWERED, "answer": answer, "error": None, "message": None}


def _timed(release: Release, asked: float) -> Release:
    """The answer with a time that tells neither how long the engine counted nor who asked before.

    The time of a stored answer is that of the question for which it was drawn.
    """
    if release.charge is not None and release.charge.stored:
        return replace(release, time=release.time.replace(second=0, microsecond=0))
    return replace(release, time=datetime.fromtimestamp(asked, UTC))
