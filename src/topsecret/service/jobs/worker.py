"""The desk where one worker process answers: threads, a sign of life, lost jobs taken over."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

from sqlalchemy import delete, select, update

from topsecret.errors import Closing, TopSecretError
from topsecret.ledger.store import Store
from topsecret.service.jobs.queue import Jobs, Lost
from topsecret.service.jobs.release_schedule import AT_ONCE, Turns
from topsecret.service.schema import WORKERS

BEAT = 2.0
GLANCE = 0.5
"""Seconds between looks at the time limits."""
SWEEP = 3600.0
"""Seconds between looks for what is old enough to be forgotten."""
SILENCE = 10.0
"""Seconds without a sign of life after which a worker counts as dead."""

Told = Callable[[str], None]


class Desk:
    """Runs the jobs of one worker process."""

    def __init__(
        self,
        store: Store,
        jobs: Jobs,
        turns: Turns,
        *,
        sources: int = 0,
        ended: Told,
        broke: Told,
        note: Callable[[], None],
        sweep: Callable[[], None] = lambda: None,
        tend: Callable[[], None] = lambda: None,
    ) -> None:
        self.worker = secrets.token_hex(8)
        self._store, self._jobs, self._ended, self._broke = store, jobs, ended, broke
        self._note, self._sweep, self._tend = note, sweep, tend
        # Files, and each database: a thread is begun when it is needed.
        self._pool = ThreadPoolExecutor(AT_ONCE * (1 + sources), thread_name_prefix="question")
        self._lock = threading.RLock()
        # By source, then by person; the person who is next comes first.
        self._waiting: dict[str, OrderedDict[str, deque[str]]] = {}
        self._under_way: dict[Future[None], str] = {}
        self._mine: set[str] = set()
        self._again: set[Lost] = set()
        self._closing = turns.closing
        self._heart = threading.Thread(target=self._live, name="heart", daemon=True)
        self._clock = threading.Thread(target=self._watch, name="limits", daemon=True)
        self._keepers = (  # neither may keep the other waiting
            threading.Thread(target=self._look_after, name="schedules", daemon=True),
            threading.Thread(target=self._clear_up, name="sweeps", daemon=True),
        )

    def open(self) -> None:
        """Begin to answer."""
        self._beat()
        self._heart.start()
        self._clock.start()
        for keeper in self._keepers:
            keeper.start()

    def submit(self, identity: str, user: str, source: str = "") -> None:
        """Answer a job soon. A job that comes while the desk closes is left for another."""
        with self._lock:
            if identity in self._mine:
                return
            self._mine.add(identity)
            queues = self._waiting.setdefault(source, OrderedDict())
            queues.setdefault(user, deque()).append(identity)
        self._dispatch(source)

    def _dispatch(self, source: str) -> None:
        """Begin with as many of a source as may be under way, by turns among those who asked."""
        with self._lock:
            queues = self._waiting.get(source, OrderedDict())
            busy = sum(one == source for one in self._under_way.values())
            while queues and busy < AT_ONCE and not self._closing.is_set():
                user, queue = next(iter(queues.items()))
                identity = queue.popleft()
                with suppress(RuntimeError):  # the desk closes: it is left for another
                    future = self._pool.submit(self._run, identity, user, source)
                    self._under_way[future] = source
                    future.add_done_callback(self._done)
                    busy += 1
                if queue:
                    queues.move_to_end(user)
                else:
                    del queues[user]

    def _done(self, future: Future[None]) -> None:
        with self._lock:
            source = self._under_way.pop(future, "")
        self._dispatch(source)

    def close(self, grace: float) -> bool:
        """Finish what runs, leave what waits to others; False when time ran out."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            running = [future for future in self._under_way if not future.done()]
        finished = not wait(running, timeout=grace).not_done
        until = time.monotonic() + grace
        for keeper in self._keepers:
            if keeper.is_alive():
                keeper.join(max(0.0, until - time.monotonic()))
        try:
            with self._store.writing() as connection:
                connection.execute(delete(WORKERS).where(WORKERS.c.id == self.worker))
            self._note()
        except TopSecretError as error:
            self._broke(type(error).__name__)
        return finished

    def _run(self, identity: str, user: str, source: str) -> None:
        try:
            self._ended(self._jobs.run(identity, source))
        except Closing:
            if not self._closing.is_set():  # its dataset hangs, or another asks the same
                self._try_again((identity, user, source))
            # Otherwise whoever starts next takes it over: it is stored.
        except Exception as error:
            # Asking again is safe: the request id finds whatever the ledger has of it.
            self._try_again((identity, user, source))
            self._broke(type(error).__name__)
        finally:
            with self._lock:
                self._mine.discard(identity)

    def _try_again(self, job: Lost) -> None:
        with self._lock:
            self._again.add(job)

    def _live(self) -> None:
        self._repeat(self._beat, BEAT)

    def _look_after(self) -> None:
        """Schedules: no sign of life may wait for them."""
        self._at_once(self._tend)
        self._repeat(self._tend, BEAT)

    def _clear_up(self) -> None:
        """What is to be forgotten."""
        self._at_once(self._sweep)
        self._repeat(self._sweep, SWEEP)

    def _watch(self) -> None:
        self._repeat(self._jobs.watch, GLANCE)

    def _repeat(self, act: Callable[[], object], pause: float) -> None:
        """Until the desk closes, whatever goes wrong: without a sign of life others take over."""
        while not self._closing.wait(pause):
            self._at_once(act)

    def _at_once(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:
            self._broke(type(error).__name__)

    def _beat(self) -> None:
        now = time.time()
        with self._store.writing() as connection:
            moved = connection.execute(
                update(WORKERS).where(WORKERS.c.id == self.worker).values(seen=now)
            )
            if moved.rowcount == 0:
                connection.execute(WORKERS.insert().values(id=self.worker, seen=now))
        # Its own sign of life stands by then: two that were silent together would otherwise take
        # each other for dead, and PostgreSQL would end one of them.
        with self._store.writing() as connection:
            connection.execute(delete(WORKERS).where(WORKERS.c.seen < now - SILENCE))
            living = set(connection.execute(select(WORKERS.c.id)).scalars())
        self._jobs.hear(self._jobs.cancelled(self.worker))
        with self._lock:
            again, self._again = self._again, set()
            known = self._mine | {identity for identity, _, _ in again}
        try:
            lost = self._jobs.take_over(self.worker, living, known, now - SILENCE, again)
        except BaseException:
            with self._lock:
                self._again |= again
            raise
        for job in dict.fromkeys(lost):
            self.submit(*job)
        self._note()  # last: a witness that cannot be written must not keep lost questions waiting
