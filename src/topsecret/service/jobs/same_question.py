"""A question that another has under way: it waits for that answer, and holds nothing meanwhile.

For some seconds the ledger itself looks again and again. After that the question is put back, as
those about a dataset that hangs are: it has no thread, no place and no reservation, and is tried
again with the worker's next sign of life. It waits while the first one's job works at a living
worker, and no longer than a question may take. Otherwise it is counted, and paid for, itself: so
where the first one fails, is cancelled, is written off or is in doubt.

Whoever waits here has reserved nothing, and nobody waits for one without a reservation: no two wait
for each other.
"""

from __future__ import annotations

import time

from sqlalchemy import RowMapping, select

from topsecret.errors import Closing
from topsecret.ledger import Ledger
from topsecret.ledger.store import Store
from topsecret.service.jobs.job import WORKING
from topsecret.service.jobs.release_schedule import Turns
from topsecret.service.schema import JOBS, WORKERS


class SameQuestions:
    """Which questions of this process wait for another's answer, and for whose."""

    def __init__(self, store: Store, ledger: Ledger, turns: Turns) -> None:
        self._store, self._ledger, self._turns = store, ledger, turns
        self._awaited: dict[str, tuple[str, str]] = {}

    def look_again(self, row: RowMapping) -> None:
        """Put a question back without planning it anew, while it has to wait still."""
        awaited = self._awaited.pop(row["id"], None)
        if awaited is not None and row["cancelled"] is None:
            self.wait_for(row, *awaited)

    def wait_for(self, row: RowMapping, analyst: str, request: str | None) -> None:
        """Put a question back where another's, known by its request, is worth waiting for."""
        if request is None or (analyst, request) == (row["user"], row["request"]):
            return  # nobody's job; or its own reservation, of before a crash
        late = time.time() >= row["asked"] + self._turns.patience()
        if not late and self._works(row["dataset"], analyst, request):
            self._awaited[row["id"]] = analyst, request
            raise Closing("the same question is under way: this one is tried again later")

    def _works(self, dataset: str, analyst: str, request: str) -> bool:
        """Whether a job has a reservation, and no end yet at a living worker."""
        same = (JOBS.c.user == analyst, JOBS.c.dataset == dataset, JOBS.c.request == request)
        living = select(JOBS.c.id).join(WORKERS, WORKERS.c.id == JOBS.c.worker)
        with self._store.reading() as connection:
            found = connection.execute(living.where(*same, JOBS.c.state == WORKING)).first()
        # What is given back or written off has none, though its job may go on.
        return found is not None and self._ledger.requested(dataset, analyst, request)
