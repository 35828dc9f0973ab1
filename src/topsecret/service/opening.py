"""Looking at a source outside of questions: a query that is previewed, a file that is registered.

No row is read for it, but a network folder may hang and a table be locked, for ever. So it has
threads of its own, few of them, that accounts take in turns: whatever hangs, no other request and
no look at the service's health waits for it. What does not end in time is refused in plain words.
Its thread lends its place to others and stays counted until it ends; until then nothing else is
tried with the same events.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from topsecret.service.account_places import AccountPlaces
from topsecret.service.problems import Problem
from topsecret.sources.running_statement import Stop

if TYPE_CHECKING:
    from topsecret.service.jobs.release_schedule import Events

T = TypeVar("T")

AT_ONCE = 2
"""How many sources one worker process opens at the same time."""
LIMIT = 15.0
"""Seconds to wait for a turn, and again for the source; a PostgreSQL that is gone needs ten."""
MOST_STUCK = 8
"""With so many threads past their time no source is opened."""
MOST_OF_ONE = 3
"""With so many of these threads its own, an account opens no source."""


class Opening:
    """What one worker process has under way. For its event loop alone."""

    def __init__(
        self,
        hanging: Callable[[], Collection[Events]] = frozenset,
        noticed: Callable[[str], None] = lambda dataset: None,
    ) -> None:
        self._places, self._hanging, self._noticed = AccountPlaces(AT_ONCE), hanging, noticed
        self._stuck: list[tuple[str, str]] = []

    async def run(self, who: str, events: Events, call: Callable[[], T]) -> T:
        """What the call finds; a ``Problem`` where the events do not answer."""
        self._check(who, events)
        try:
            async with asyncio.timeout(LIMIT):
                await self._places.take(who)
        except TimeoutError:
            raise _not_now("Other data are being looked at and do not answer.") from None
        try:
            self._check(who, events)  # still: who waited for the same events knows better by now
        except Problem:
            self._places.leave(who)
            raise
        mine, stop = (who, events[1]), Stop()
        try:
            found = _in_a_thread(stop, call)
        except BaseException:  # no thread can be had
            self._places.leave(who)
            raise

        def ended(one: asyncio.Future[T]) -> None:
            one.exception()  # nobody may be there any more to ask for it
            if mine in self._stuck:
                self._stuck.remove(mine)
            else:
                self._places.leave(who)

        found.add_done_callback(ended)
        await asyncio.wait({found}, timeout=LIMIT)
        if not found.done():
            self._stuck.append(mine)
            self._places.leave(who)
            stop.now("it took too long")
            self._noticed(events[0])
            raise _not_now(f"The data did not answer within {LIMIT:g} s.")
        return found.result()

    def _check(self, who: str, events: Events) -> None:
        mine = sum(other == who for other, _ in self._stuck)
        known = {place for _, place in self._hanging()} | {place for _, place in self._stuck}
        if events[1] in known:
            raise _not_now("The data do not answer at present.")
        if len(self._stuck) >= MOST_STUCK or mine >= MOST_OF_ONE:
            raise _not_now("Several sources do not answer at present.")


def _not_now(words: str) -> Problem:
    more = "Nothing was charged or changed; try again later, or tell the operator."
    return Problem(503, "source_failed", f"{words} {more}")


def _in_a_thread(stop: Stop, call: Callable[[], T]) -> asyncio.Future[T]:
    """What a thread of its own finds; the process does not wait for it to stop."""
    loop, context = asyncio.get_running_loop(), copy_context()
    found: asyncio.Future[T] = loop.create_future()

    def look() -> None:
        try:
            with stop.here():
                result = call()
        except Exception as error:
            tell: Callable[[], None] = partial(found.set_exception, error)
        except BaseException:  # a library's own end: its words are nobody's business
            failed = RuntimeError("the source ended the thread that looked at it")
            tell = partial(found.set_exception, failed)
        else:
            tell = partial(found.set_result, result)
        with suppress(RuntimeError):  # the service has stopped
            loop.call_soon_threadsafe(tell)

    threading.Thread(target=context.run, args=(look,), name="opening", daemon=True).start()
    return found
