"""Questions that are asked at set times, all of them paid for when the schedule is made.

For each of its times the ledger holds what the question may take (``ledger.holds``), so that nobody
else spends it. At its time the question becomes a job like any other, which is reserved in the
place of what was held. What is not needed is given back: where the answer is stored already, where
the question is refused, where it took less.

| a run is | because |
| --- | --- |
| waiting | its time has not come |
| asked | its question is a job, found under its answer's id |
| ended | the job has ended, well or not |
| skipped | the service was down, and a later time of the schedule has come since |
| refused | it could not be asked: the dataset is paused, the account is deleted |
| given up | the schedule was ended before |

Every step is one transaction and may be repeated: a process that is killed leaves a run where it
was, and whichever process looks next goes on.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    delete,
    func,
    or_,
    select,
    update,
)

from topsecret.errors import BudgetExceeded, InvalidParameter, Taken
from topsecret.ledger import Ledger
from topsecret.ledger.amounts import Amounts
from topsecret.ledger.holds import Holds
from topsecret.ledger.store import Store
from topsecret.service.auth.standing import locked
from topsecret.service.jobs.job import IN_DOUBT, WORKING, Asked
from topsecret.service.jobs.queue import Jobs
from topsecret.service.problems import Problem
from topsecret.service.schedule import (
    ASKED,
    ENDED,
    GIVEN_UP,
    REFUSED,
    SKIPPED,
    WAITING,
    Schedule,
    schedule_of,
)
from topsecret.service.schema import JOBS, RUNS, SCHEDULES

MOST_WAITING = 20
"""How many schedules with runs to come one account may have."""
MOST_KEPT = 100
"""How many schedules of one account are kept, those that have ended included."""
MOST_RUNS_A_DAY = 1000
"""How many runs an account may pay for ahead in a day: each is two entries of the ledger."""

_TO_COME = select(RUNS.c.schedule).where(RUNS.c.state.in_((WAITING, ASKED)))


class Schedules:
    """The schedules of all accounts. Every method may block."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        jobs: Jobs,
        *,
        check: Callable[[str, str, Asked], object],
        submit: Callable[[str, str, str], None],
        lane: Callable[[str], str],
        tell: Callable[[Mapping[str, object]], None],
    ) -> None:
        self._store, self._ledger, self._holds, self._jobs = store, ledger, Holds(ledger), jobs
        self._check, self._submit, self._lane, self._tell = check, submit, lane, tell

    def begin(
        self,
        user: str,
        name: str,
        dataset: str,
        asked: Asked,
        *,
        cost: Amounts,
        times: Sequence[datetime],
        every: str,
        request: str | None = None,
        admit: Callable[[], None] = lambda: None,
    ) -> tuple[Schedule, bool]:
        """Pay for all runs at once and note when they are, in one transaction, or refuse.

        ``admit`` is called last of what may refuse, for a new one alone.
        The same request again finds the same schedule; whether it is new. Once that is forgotten
        it is refused where runs were asked: a new one's would be the same requests, and find what
        became of those.
        """
        request = request or secrets.token_hex(12)
        identity = hashlib.sha256(f"{user}\n{request}".encode()).hexdigest()[:24]
        values = {"id": identity, "user": user, "name": name, "dataset": dataset}
        values |= {"question": asked.to_text(), "every": every}
        # In this order: one that is made meanwhile is found.
        if self._ran(user, dataset, identity, len(times)) and not self._found(
            SCHEDULES.c.id == identity
        ):
            raise Problem(
                409,
                "request_id_used",
                "This request id was used for a schedule that is forgotten by now; choose a new "
                "request id.",
            )

        def note(connection: Connection, held: Sequence[str]) -> None:
            locked(connection, user)
            known = select(SCHEDULES.c.id).where(SCHEDULES.c.id == identity)
            if connection.execute(known).first() is not None:
                raise Taken("it is there already")
            mine = select(SCHEDULES.c.id).where(SCHEDULES.c.user == user)
            waiting = select(func.count(RUNS.c.schedule.distinct())).where(
                RUNS.c.state == WAITING, RUNS.c.schedule.in_(mine)
            )
            if connection.execute(waiting).scalar_one() >= MOST_WAITING:
                raise InvalidParameter(f"{MOST_WAITING} schedules have runs to come; end one first")
            _make_room(connection, user)
            admit()
            connection.execute(SCHEDULES.insert().values(values | {"created": time.time()}))
            for number, (at, one) in enumerate(zip(times, held, strict=True), 1):
                run = {"number": number, "at": at.timestamp(), "held": one, "state": WAITING}
                connection.execute(RUNS.insert().values(schedule=identity, **run))

        failed, new = None, True
        try:
            self._holds.hold(dataset, user, cost, len(times), note)
        except Taken:
            new = False
        except BudgetExceeded as error:
            failed = error
        found = self._found(SCHEDULES.c.id == identity)
        if failed is not None and not found:  # a schedule that is there may have taken the rest
            raise _too_much(failed, cost, len(times))
        terms = (dataset, asked, every, len(times))
        if (
            not found
            or (found[0].dataset, found[0].asked, found[0].every, len(found[0].runs)) != terms
        ):
            raise Problem(409, "request_id_used", "This request id was used for another schedule.")
        return found[0], new and failed is None

    def _ran(self, user: str, dataset: str, identity: str, times: int) -> bool:
        """Whether the questions of a schedule's runs were asked, kept or forgotten since."""
        runs = [_request(identity, number) for number in range(1, times + 1)]
        mine = (JOBS.c.user == user, JOBS.c.dataset == dataset, JOBS.c.request.in_(runs))
        with self._store.reading() as connection:
            if connection.execute(select(JOBS.c.id).where(*mine)).first() is not None:
                return True
        return any(self._ledger.requested(dataset, user, one) for one in runs)

    def get(self, identity: str) -> Schedule:
        """One of them."""
        for found in self._found(SCHEDULES.c.id == identity):
            return found
        raise no_such_schedule()

    def of_user(self, user: str) -> list[Schedule]:
        """Those that are kept of an account, the newest first."""
        return self.latest(user, None, MOST_KEPT)

    def to_come(self, dataset: str) -> list[Schedule]:
        """Those about a dataset that have runs to come, the newest first."""
        return self._found(SCHEDULES.c.dataset == dataset, SCHEDULES.c.id.in_(_TO_COME))

    def latest(
        self, user: str | None, dataset: str | None, most: int, before: str | None = None
    ) -> list[Schedule]:
        """The newest of an account or about a dataset, or the newest before one of them."""
        which = [] if user is None else [SCHEDULES.c.user == user]
        which += [] if dataset is None else [SCHEDULES.c.dataset == dataset]
        page = select(SCHEDULES.c.id).where(*which)
        page = page.order_by(SCHEDULES.c.created.desc(), SCHEDULES.c.id).limit(most)
        if before is not None:
            known = select(SCHEDULES.c.created).where(*which, SCHEDULES.c.id == before)
            with self._store.reading() as connection:
                at = connection.execute(known).scalar_one_or_none()
            if at is None:
                raise no_such_schedule()
            same = and_(SCHEDULES.c.created == at, SCHEDULES.c.id > before)
            page = page.where(or_(SCHEDULES.c.created < at, same))
        return self._found(SCHEDULES.c.id.in_(page))

    def end(self, identity: str) -> None:
        """Give up the runs to come and give back what is held for them.

        A schedule of which nothing is to come is forgotten; its answers stay.
        """
        found = self.get(identity)
        waiting = [run.number for run in found.to_come if run.state == WAITING]
        if waiting:
            self._move(found.dataset, identity, waiting, WAITING, {"state": GIVEN_UP})
        elif not found.to_come:
            self._delete(identity)

    def forget(self, days: float) -> None:
        """Forget the schedules whose last time was so long ago and that have nothing to come."""
        last = select(RUNS.c.schedule).group_by(RUNS.c.schedule)
        old = last.having(func.max(RUNS.c.at) < time.time() - 86400 * days)
        for found in self._found(SCHEDULES.c.id.in_(old)):
            if not found.to_come:
                self._delete(found.id)

    def _delete(self, identity: str) -> None:
        with self._store.writing() as connection:
            _forget(connection, [identity])

    def end_all(self, user: str) -> None:
        """Give up all runs of an account."""
        for found in self._found(SCHEDULES.c.user == user, SCHEDULES.c.id.in_(_TO_COME)):
            self.end(found.id)

    def tend(self, worker: str) -> None:
        """Ask what is due, and see to what has ended; any number of processes may."""
        now = time.time()
        query = select(RUNS, SCHEDULES.c.dataset).join(SCHEDULES, SCHEDULES.c.id == RUNS.c.schedule)
        due = query.where(RUNS.c.state == WAITING, RUNS.c.at <= now)
        due = due.order_by(RUNS.c.schedule, RUNS.c.number)
        with self._store.reading() as connection:
            found = connection.execute(due).mappings().all()
        for identity, group in groupby(found, key=lambda row: str(row["schedule"])):
            *missed, latest = list(group)
            if missed:
                numbers = [row["number"] for row in missed]
                self._move(latest["dataset"], identity, numbers, WAITING, {"state": SKIPPED})
            with self._store.writing() as connection:
                self._moved(connection, identity, [latest["number"]], WAITING, {"state": ASKED})
        more = (SCHEDULES.c.user, SCHEDULES.c.question, SCHEDULES.c.name, JOBS.c.shown)
        query = query.add_columns(*more, JOBS.c.state.label("became"))
        query = query.outerjoin(JOBS, JOBS.c.id == RUNS.c.answer).where(RUNS.c.state == ASKED)
        with self._store.reading() as connection:
            found = connection.execute(query).mappings().all()
        for row in found:
            if row["answer"] is None:
                self._ask(row, worker)
            elif row["became"] is None or (row["shown"] or now + 1) <= now:
                self._see_to(row)

    def _ask(self, row: RowMapping, worker: str) -> None:
        """Make the run a job, once, whoever tries; or give it up where it cannot be asked."""
        asked, user, dataset = Asked.from_text(row["question"]), row["user"], row["dataset"]
        refused = None
        try:
            self._check(user, dataset, asked)
            lane, request = self._lane(dataset), _request(row["schedule"], row["number"])
            job, new = self._jobs.ask(user, dataset, asked, request, worker, row["held"])
        except Problem as problem:
            if problem.status == 429:
                return  # too many are under way: at the next look
            refused = problem.message
        except InvalidParameter as error:
            refused = str(error)
        if refused is not None:
            ended = {"state": REFUSED, "message": refused}
            if self._move(dataset, row["schedule"], [row["number"]], ASKED, ended):
                self._tell(_notice(row, "refused", None))
            return
        if new:  # first: who dies now, or cannot write, leaves a job that is answered all the same
            self._submit(job.id, user, lane)
        with self._store.writing() as connection:
            self._moved(connection, row["schedule"], [row["number"]], ASKED, {"answer": job.id})

    def _see_to(self, row: RowMapping) -> None:
        """The job has ended, where it shows; what it did not need is given back."""
        became, ended = row["became"] or "forgotten", {"state": ENDED}
        if became == WORKING:
            return
        if became == IN_DOUBT:
            request = _request(row["schedule"], row["number"])
            if self._ledger.requested(row["dataset"], row["user"], request):
                return
            became = "written off"
            ended |= {"message": "It was cut short, and an owner has written it off."}
        if self._move(row["dataset"], row["schedule"], [row["number"]], ASKED, ended):
            self._tell(_notice(row, became, row["answer"]))

    def _move(
        self,
        dataset: str,
        schedule: str,
        numbers: Iterable[int],
        before: str,
        values: Mapping[str, object],
    ) -> Sequence[str]:
        """Move runs on, and give back what is still held for those that nobody else has moved."""
        return self._holds.give_back(
            dataset, lambda connection: self._moved(connection, schedule, numbers, before, values)
        )

    def _moved(
        self,
        connection: Connection,
        schedule: str,
        numbers: Iterable[int],
        before: str,
        values: Mapping[str, object],
    ) -> list[str]:
        held: list[str] = []
        for number in numbers:
            one = (RUNS.c.schedule == schedule, RUNS.c.number == number, RUNS.c.state == before)
            if connection.execute(update(RUNS).where(*one).values(values)).rowcount == 1:
                mine = (RUNS.c.schedule == schedule, RUNS.c.number == number)
                held.append(connection.execute(select(RUNS.c.held).where(*mine)).scalar_one())
        return held

    def _found(self, *which: ColumnElement[Any]) -> list[Schedule]:
        query = select(SCHEDULES, RUNS).join(RUNS, RUNS.c.schedule == SCHEDULES.c.id)
        query = query.where(*which)
        query = query.order_by(SCHEDULES.c.created.desc(), SCHEDULES.c.id, RUNS.c.number)
        with self._store.reading() as connection:
            found = connection.execute(query).mappings().all()
        return [schedule_of(list(group)) for _, group in groupby(found, key=lambda row: row["id"])]


def _make_room(connection: Connection, user: str) -> None:
    """Forget the oldest that have ended, as many as one more needs; their answers stay."""
    mine = select(SCHEDULES.c.id).where(SCHEDULES.c.user == user)
    number = len(connection.execute(mine).all()) + 1 - MOST_KEPT
    if number <= 0:
        return
    oldest = mine.where(SCHEDULES.c.id.not_in(_TO_COME))
    oldest = oldest.order_by(SCHEDULES.c.created, SCHEDULES.c.id).limit(number)
    ended = list(connection.execute(oldest).scalars())
    if len(ended) < number:
        raise InvalidParameter(
            f"{MOST_KEPT} schedules have runs to come or under way; end one first"
        )
    _forget(connection, ended)


def _forget(connection: Connection, identities: Sequence[str]) -> None:
    connection.execute(delete(RUNS).where(RUNS.c.schedule.in_(identities)))
    connection.execute(delete(SCHEDULES).where(SCHEDULES.c.id.in_(identities)))


def no_such_schedule() -> Problem:
    """There is none, or none for this account: they must look alike."""
    return Problem(404, "not_found", "There is no such schedule for you.")


def _too_much(error: BudgetExceeded, cost: Amounts, times: int) -> Problem:
    """How often it would fit."""
    fits = [int(error.left.get(name, 0) / value) for name, value in cost.items() if value]
    fit = min(fits, default=0)
    often = f"It fits {fit} times." if fit > 0 else "It does not fit once."
    words = (
        f"{times} times, paid in advance, need more than is left of your share or of the dataset."
    )
    return Problem(409, "budget_exceeded", f"{words} {often}")


def _request(schedule: str, number: int) -> str:
    """The request id of a run's question."""
    return f"scheduled.{schedule}.{number}"


def _notice(row: RowMapping, state: str, answer: str | None) -> dict[str, object]:
    """What the operator's command is told: public names, no item."""
    named = {"schedule": row["schedule"], "name": row["name"], "run": row["number"]}
    whose = {"account": row["user"], "dataset": row["dataset"]}
    return named | whose | {"state": state, "answer": answer}
