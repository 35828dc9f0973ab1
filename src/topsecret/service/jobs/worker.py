"""The desk where one worker process answers: threads, a sign of life, lost jobs taken over."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from sqlalchemy import delete, select, update

from topsecret.errors import Closing, TopSecretError
from topsecret.ledger.store import Store
from topsecret.service.jobs.queue import Jobs
from topsecret.service.jobs.release_schedule import AT_ONCE, Turns
from topsecret.service.schema import WORKERS

BEAT = 2.0
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
    ) -> None:
        self.worker = secrets.token_hex(8)
        self._store, self._jobs, self._ended, self._broke = store, jobs, ended, broke
        self._note = note
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="question")
        self._under_way: set[Future[None]] = set()
        self._again: set[str] = set()
        self._closing = turns.closing
        self._heart = threading.Thread(target=self._live, name="heart", daemon=True)

    def open(self) -> None:
        """Begin to answer."""
        self._beat()
        self._heart.start()

    def submit(self, identity: str) -> None:
        """Answer a job soon. A job that comes while the desk closes is left for another."""
        if self._closing.is_set():
            return
        future = self._pool.submit(self._run, identity)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)

    def close(self, grace: float) -> bool:
        """Finish what runs, leave what waits to others; False when time ran out."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        running = [future for future in set(self._under_way) if not future.done()]
        finished = not wait(running, timeout=grace).not_done
        try:
            with self._store.writing() as connection:
                connection.execute(delete(WORKERS).where(WORKERS.c.id == self.worker))
            self._note()
        except TopSecretError as error:
            self._broke(type(error).__name__)
        return finished

    def _run(self, identity: str) -> None:
        try:
            self._ended(self._jobs.run(identity))
        except Closing:
            pass  # it is stored: whoever starts next takes it over
        except Exception as error:
            # Asking again is safe: the request id finds whatever the ledger has of it.
            self._again.add(identity)
            self._broke(type(error).__name__)

    def _live(self) -> None:
        while not self._closing.wait(BEAT):
            try:
                self._beat()
            except TopSecretError as error:
                self._broke(type(error).__name__)

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
        again, self._again = self._again, set()
        for identity in {*again, *self._jobs.take_over(self.worker, living)}:
            self.submit(identity)
