"""Questions as jobs: asked once, run once, left and found again, shown at ticks.

A job is stored before it runs. Whichever process ends it asks ``top_k`` with the job's request
id, so that a job taken over from a dead process finds the answer that was settled, or learns that
its reservation is in doubt, or pays for the first time: never twice, never with other noise.

*Time.* How long an engine counts depends on the data. The end of a job, good or bad, reaches the
ledger and is shown only a whole number of ticks after counting began (``release_schedule``),
and there is nothing in between to watch: no refund, no room for another question, no message.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection, RowMapping, func, or_, select, update

from topsecret.errors import (
    BudgetExceeded,
    Closing,
    DataIndependentFailure,
    InDoubt,
    InvalidParameter,
    LedgerError,
    RulesChanged,
    SourceError,
    Taken,
    TopSecretError,
)
from topsecret.ledger import Ledger
from topsecret.ledger.store import Store
from topsecret.service.auth.people import User
from topsecret.service.auth.standing import check_asker
from topsecret.service.datasets import Dataset, Datasets
from topsecret.service.jobs.answering import (
    IN_THE_DARK,
    UNREAD,
    WRITTEN_OFF,
    answered,
    failure,
    no_such_answer,
    not_now,
    released,
    without,
)
from topsecret.service.jobs.copies import kept_or_refused, large_repeat
from topsecret.service.jobs.forgetting import forget
from topsecret.service.jobs.history import WITH_ANSWERS, WITHOUT_ANSWERS, latest
from topsecret.service.jobs.job import (
    ANSWERED,
    FAILED,
    IN_DOUBT,
    REFUSED,
    WORKING,
    Asked,
    Job,
    seen,
)
from topsecret.service.jobs.release_schedule import Turn, Turns
from topsecret.service.jobs.same_question import SameQuestions
from topsecret.service.jobs.second_look import second_look
from topsecret.service.problems import Problem
from topsecret.service.schema import JOBS, RUNS
from topsecret.service.shares import refusal
from topsecret.service.table_versions import version_asked

_AT_ONCE = 100
"""How many jobs one account may have under way."""
_EMPTY: dict[str, object] = {column.name: None for column in JOBS.c}


Lost = tuple[str, str, str]
"""A job, whose it is, and the source that it is about."""


class Jobs:
    """All jobs, in the store. Every method may block: call it from a thread."""

    def __init__(self, store: Store, ledger: Ledger, datasets: Datasets, turns: Turns) -> None:
        self._store, self._ledger, self._datasets = store, ledger, datasets
        self._turns, self._same = turns, SameQuestions(store, ledger, turns)
        self._under_way: dict[str, Turn] = {}
        # Answers that were paid for and not stored: their dataset is not read again for them.
        self._unstored: dict[str, Mapping[str, object]] = {}
        self.failed: Callable[..., None] = lambda **_: None
        """Told of a question whose data could not be read: public words alone."""
        self.trust: Callable[[], None] = lambda: None
        """Raises a ``LedgerError`` where the ledger has forgotten what was spent."""
        self.check: Callable[[str, str, Asked], object] = lambda *_: None
        """Raises where the account could not ask this of the dataset any more."""

    def ask(
        self,
        asker: User | str,
        dataset: str,
        asked: Asked,
        request: str | None,
        worker: str,
        held: str | None = None,
    ) -> tuple[Job, bool]:
        """The job for a question, perhaps paid from what is held, and whether it is new."""
        self.trust()
        request = request or secrets.token_hex(12)
        question, user = asked.to_text(), asker.name if isinstance(asker, User) else asker
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
        try:
            with self._store.writing() as connection:
                check_asker(connection, asker)  # whoever deletes it ends this question as well
                # As it is shown: the true state would tell when an engine was done.
                unseen = or_(JOBS.c.shown.is_(None), JOBS.c.shown > values["asked"])
                busy = select(JOBS.c.shown).where(JOBS.c.user == user, unseen)  # by an index alone
                if len(connection.execute(busy.limit(_AT_ONCE)).all()) >= _AT_ONCE:
                    raise Problem(
                        429,
                        "too_many",
                        f"{_AT_ONCE} questions of yours are under way; wait for some",
                    )
                connection.execute(JOBS.insert().values(values))
            # Whoever reads it again may fail where this one did not, and it would be nobody's.
            return seen(_EMPTY | values, time.time()), True
        except Taken:
            pass
        with self._store.reading() as connection:
            row = connection.execute(select(JOBS).where(*mine)).mappings().one()
        if row["question"] != question:
            raise Problem(
                409,
                "request_id_used",
                "this request id was used for another question; choose a new request id",
            )
        return seen(row, time.time()), False

    def find(self, identity: str) -> Job:
        """One job as it may be shown now."""
        query = select(JOBS).where(JOBS.c.id == identity)
        with self._store.reading() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise no_such_answer()
        return seen(row, time.time())

    def history(
        self,
        user: str | None,
        dataset: str | None = None,
        most: int = 100,
        before: str | None = None,
    ) -> list[Job]:
        """The latest jobs, or the latest before one of them, newest first."""
        return latest(self._store, WITH_ANSWERS, user, dataset, most, before, time.time())

    def without_answers(
        self, user: str | None, dataset: str | None, most: int, before: str | None = None
    ) -> list[Job]:
        """The same for lists of questions, whose answers are not read, however large they are."""
        return latest(self._store, WITHOUT_ANSWERS, user, dataset, most, before, time.time())

    def run(self, identity: str, source: str = "") -> str:
        """Answer a job, in the turns of its source, and store what became of it; its state."""
        with self._store.reading() as connection:
            row = connection.execute(select(JOBS).where(JOBS.c.id == identity)).mappings().one()
        unstored = self._unstored.get(identity)
        if row["state"] not in (WORKING, IN_DOUBT):
            self._unstored.pop(identity, None)  # by another process
            return str(row["state"])
        if unstored is not None:
            return self._store_end(row, unstored)
        self._same.look_again(row)
        if row["cancelled"] is not None:
            return self._unread(row, source)
        turn = Turn(self._turns, row["user"], source)
        turn.put_back = partial(self._same.wait_for, row)
        self._under_way[identity] = turn
        try:
            with turn, turn.stop.here():
                return self._run(row, turn)
        except Closing:
            if not turn.stop.asked.is_set():
                raise
            return self._unread(row, source, turn.shown)
        finally:
            self._under_way.pop(identity, None)

    def _unread(self, row: RowMapping, source: str, shown: float | None = None) -> str:
        """A question that was ended before its data were read, unless an earlier try had begun."""
        if self._ledger.requested(row["dataset"], row["user"], row["request"]):
            wanted = update(JOBS).where(JOBS.c.id == row["id"]).values(cancelled=None)
            with self._store.writing() as connection:
                connection.execute(wanted)
            return self.run(row["id"], source)  # finds whatever the ledger has of it
        shown = shown or self._turns.next_tick(time.time())
        return self._store_end(row, UNREAD | {"shown": shown})

    def watch(self) -> None:
        """End what has taken too long or is no longer wanted."""
        for turn in list(self._under_way.values()):
            turn.look_at_the_clock()
        self._turns.look()

    def hear(self, cancelled: Collection[str]) -> None:
        """Questions that are no longer wanted: they end at the next tick."""
        for identity in cancelled:
            if turn := self._under_way.get(identity):
                turn.cancel()

    def cancelled(self, worker: str) -> set[str]:
        """The questions of a worker that somebody has ended."""
        mine = (JOBS.c.state == WORKING, JOBS.c.worker == worker, JOBS.c.cancelled.is_not(None))
        with self._store.reading() as connection:
            return set(connection.execute(select(JOBS.c.id).where(*mine)).scalars())

    def cancel(self, identity: str) -> Job:
        """End a question at the next tick; one that has ended by then stays as it is."""
        found = self.find(identity)
        with self._store.writing() as connection:
            connection.execute(
                update(JOBS)
                .where(JOBS.c.id == identity, JOBS.c.state == WORKING)
                .values(cancelled=time.time())
            )
        self.hear({identity})
        return found

    def under_way(self) -> int:
        """How many questions have no end yet that is shown."""
        unseen = or_(JOBS.c.shown.is_(None), JOBS.c.shown > time.time())
        query = select(func.count()).select_from(JOBS).where(unseen)
        with self._store.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def forget(self, days: float) -> int:
        """Delete the questions that ended so long ago; what the ledger has of them stays."""
        return forget(self._store, time.time() - 86400 * days, self._turns.closing)

    def cancel_all(self, user: str) -> None:
        """End everything that an account has under way."""
        mine = (JOBS.c.user == user, JOBS.c.state == WORKING)
        with self._store.writing() as connection:
            ended = set(connection.execute(select(JOBS.c.id).where(*mine)).scalars())
            for identity in sorted(ended):  # one order for all who lock several
                one = (JOBS.c.id == identity, JOBS.c.state == WORKING)
                connection.execute(update(JOBS).where(*one).values(cancelled=time.time()))
        self.hear(ended)

    def _run(self, row: RowMapping, turn: Turn) -> str:
        self.trust()
        again = partial(self._held_again, row["id"], row["held"])
        ledger = self._ledger.paced(turn).paying_from(row["held"], again)
        ended = self._ended(row, ledger, turn)
        # What needs no counting is shown when it would be if it were counted quickly.
        ended |= {"shown": turn.shown or self._turns.next_tick(time.time())}
        return self._store_end(row, ended)

    def _held_again(self, job: str, before: str, connection: Connection, now: str) -> None:
        """What was held for a question that is given back unread is held for it still."""
        # By its id: SQLite goes through all answers to find who has it, with the ledger locked.
        mine = (JOBS.c.id == job, JOBS.c.held == before)
        connection.execute(update(JOBS).where(*mine).values(held=now))
        connection.execute(update(RUNS).where(RUNS.c.held == before).values(held=now))

    def _store_end(self, row: RowMapping, ended: Mapping[str, object]) -> str:
        """Store what became of a question; an answer that cannot be stored now is kept for that."""
        if ended["state"] == ANSWERED:  # the ledger has it, whoever asks for it again
            self._unstored[row["id"]] = ended
        repeats = large_repeat(row, ended)
        with self._store.writing() as connection:
            if repeats:
                ended = kept_or_refused(connection, row, ended)
            connection.execute(
                update(JOBS)
                .where(JOBS.c.id == row["id"], JOBS.c.state.in_((WORKING, IN_DOUBT)))
                .values(dict(ended))
            )
        self._unstored.pop(row["id"], None)
        return str(ended["state"])

    def take_over(
        self,
        worker: str,
        living: Collection[str],
        known: Collection[str] = (),
        before: float = -math.inf,
        again: Collection[Lost] = (),
    ) -> list[Lost]:
        """The jobs that no living process has, now this one's, and its own to be tried ``again``.

        Among them those of this process's own asked ``before`` a time that it does not know: the
        store failed just as they were noted. What is tried again may be about another source by
        now, or another process's.
        """
        columns = (JOBS.c.id, JOBS.c.user, JOBS.c.worker, JOBS.c.asked, JOBS.c.dataset)
        with self._store.writing() as connection:
            query = select(*columns).where(JOBS.c.state == WORKING)
            rows = connection.execute(query.order_by(JOBS.c.asked)).all()
            lost = [
                row
                for row in rows
                if row.worker not in living
                or (row.worker == worker and row.id not in known and row.asked < before)
            ]
            taken = set()
            # On PostgreSQL another may have taken it since it was looked at, or wait for two, too.
            for row in sorted(lost, key=lambda row: row.id):
                mine = (JOBS.c.id == row.id, JOBS.c.worker == row.worker)
                if connection.execute(update(JOBS).where(*mine).values(worker=worker)).rowcount:
                    taken.add(row.id)
            found = [row for row in lost if row.id in taken]
        tried = {identity for identity, _, _ in again}
        owners = dict.fromkeys(tried, worker) | {row.id: row.worker for row in rows}
        for identity in list(self._unstored):
            if owners.get(identity) != worker:  # ended, or another's: the ledger has the answer
                self._unstored.pop(identity, None)
        found += [row for row in rows if row.id in tried and row.worker == worker]
        lanes = {
            dataset: self._datasets.lane(dataset) for dataset in {row.dataset for row in found}
        }
        working = {row.id for row in rows}  # what is in doubt is tried again as it was
        return [(row.id, row.user, lanes[row.dataset]) for row in found] + [
            job for job in again if job[0] not in working
        ]

    def _ended(self, row: RowMapping, ledger: Ledger, turn: Turn) -> dict[str, object]:
        """Ask, and put the outcome into words that hold nothing of the data."""
        asked = Asked.from_text(row["question"])
        try:
            dataset = self._datasets.get(row["dataset"])
            begun = partial(self._ledger.requested, dataset.name, row["user"], row["request"])
            may_ask = partial(self.check, row["user"], dataset.name, asked)
            if not begun():
                if dataset.state is not None:
                    return without(REFUSED, dataset.state, not_now(dataset.state))
                may_ask()
            turn.about(dataset.events)
            # Its file is looked at before the ledger has its version.
            turn.recheck = second_look(self._datasets, dataset, asked, may_ask)
            if dataset.table is not None:
                dataset = self._at_version(dataset, row, turn)
            whose = (row["user"], row["request"])
            release = released(self._datasets, dataset, asked, ledger, *whose)
        except BudgetExceeded as error:
            account = self._ledger.account(row["dataset"])
            share = self._datasets.allowance(row["dataset"], row["user"])
            words = refusal(error, account, share, asked.epsilon)
            return without(REFUSED, "budget_exceeded", words)
        except InDoubt:
            kept = self._ledger.requested(row["dataset"], row["user"], row["request"])
            return dict(IN_THE_DARK if kept else WRITTEN_OFF)
        except (InvalidParameter, Problem) as error:  # also where the owner changed what is allowed
            if self._ledger.requested(row["dataset"], row["user"], row["request"]):
                # A process died after the ledger heard of the end, before it was stored here; or
                # the dataset was pointed to other events since.
                words = (
                    "This question was cut short, or its dataset is about other events by now. "
                    "What it may cost stays charged."
                )
                return without(FAILED, "failed", words)
            words = error.message if isinstance(error, Problem) else str(error)
            return without(REFUSED, "refused", words)
        except RulesChanged as error:
            return without(REFUSED, "refused", str(error))
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
            return without(FAILED, "failed", "The question could not be answered.")
        return answered(release, row["asked"], dataset.name)

    def _at_version(self, dataset: Dataset, row: RowMapping, turn: Turn) -> Dataset:
        """The dataset with its table's version, which stays what it was when a question began."""
        begun = self._ledger.asked(dataset.name, row["user"], row["request"])
        if begun is not None:  # also where the job was forgotten since
            return replace(dataset, version=version_asked(begun))
        if dataset.version_from is not None:
            with turn.aside():
                dataset = self._datasets.at_its_version(dataset)
        return dataset
