"""The desk where one worker process answers: threads, a sign of life, lost jobs taken over."""

from __future__ import annotations

import math
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
from topsecret.service.jobs.queue import Jobs
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
        ended: Told,
        broke: Told,
        note: Callable[[], None],
        sweep: Callable[[], None] = lambda: None,
        tend: Callable[[], None] = lambda: None,
    ) -> None:
        self.worker = secrets.token_hex(8)
        self._store, self._jobs, self._ended, self._broke = store, jobs, ended, broke
        self._note, self._sweep, self._swept = note, sweep, -math.inf
        self._tend = tend
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="question")
        self._lock = threading.RLock()
        self._waiting: OrderedDict[str, deque[str]] = OrderedDict()
        self._under_way: set[Future[None]] = set()
        self._again: set[tuple[str, str]] = set()
        self._closing = turns.closing
        self._heart = threading.Thread(target=self._live, name="heart", daemon=True)
        self._clock = threading.Thread(target=self._watch, name="limits", daemon=True)

    def open(self) -> None:
        """Begin to answer."""
        self._beat()
        self._heart.start()
        self._clock.start()

    def submit(self, identity: str, user: str) -> None:
        """Answer a job soon. A job that comes while the desk closes is left for another."""
        with self._lock:
            self._waiting.setdefault(user, deque()).append(identity)
        self._dispatch()

    def _dispatch(self) -> None:
        """Begin with as many as there are threads, by turns among those who asked."""
        with self._lock:
            while self._waiting and len(self._under_way) < AT_ONCE and not self._closing.is_set():
                user, queue = next(iter(self._waiting.items()))
                identity = queue.popleft()
                with suppress(RuntimeError):  # the desk closes: it is left for another
                    future = self._pool.submit(self._run, identity, user)
                    self._under_way.add(future)
                    future.add_done_callback(self._done)
                if queue:
                    self._waiting.move_to_end(user)
                else:
                    del self._waiting[user]

    def _done(self, future: Future[None]) -> None:
        with self._lock:
            self._under_way.discard(future)
        self._dispatch()

    def close(self, grace: float) -> bool:
        """Finish what runs, leave what waits to others; False when time ran out."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            running = [future for future in self._under_way if not future.done()]
        finished = not wait(running, timeout=grace).not_done
        try:
            with self._store.writing() as connection:
                connection.execute(delete(WORKERS).where(WORKERS.c.id == self.worker))
            self._note()
        except TopSecretError as error:
            self._broke(type(error).__name__)
        return finished

    def _run(self, identity: str, user: str) -> None:
        try:
            self._ended(self._jobs.run(identity))
        except Closing:
            pass  # it is stored: whoever starts next takes it over
        except Exception as error:
            # Asking again is safe: the request id finds whatever the ledger has of it.
            self._again.add((identity, user))
            self._broke(type(error).__name__)

    def _live(self) -> None:
        while not self._closing.wait(BEAT):
            try:
                self._beat()
            except TopSecretError as error:
                self._broke(type(error).__name__)

    def _watch(self) -> None:
        while not self._closing.wait(GLANCE):
            self._jobs.watch()

    def _beat(self) -> None:
        now = time.time()
        with self._store.writing() as connection:
            moved = connection.execute(
                update(WORKERS).where(WORKERS.c.id == self.worker).values(seen=now)
            )
            if moved.rowcount == 0:
                connection.execute(WORKERS.insert().values(id=self.worker, seen=now))
            connection.execute(delete(WORKERS).where(WORKERS.c.seen < now - SILENCE))
            living = set(connection.execute(select(WORKERS.c.id)).scalars())
        self._note()
        if time.monotonic() > self._swept + SWEEP:
            self._swept = time.monotonic()
            self._sweep()
        again, self._again = self._again, set()
        self._jobs.watch(self._jobs.cancelled(self.worker))
        for job in dict.fromkeys((*again, *self._jobs.take_over(self.worker, living))):
            self.submit(*job)
        try:
            self._tend()
        except Exception as error:  # a sign of life must not depend on it
            self._broke(type(error).__name__)
