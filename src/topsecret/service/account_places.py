"""Places that accounts take in turns, among the coroutines of one event loop.

Whoever waits holds no thread, and waits behind one request of another account, not behind all.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class AccountPlaces:
    """So many places, of which each account has at most ``each`` at a time."""

    def __init__(self, number: int, each: int = 1) -> None:
        self._free, self._each = number, each
        self._taken = Counter[str]()
        # Those who wait; the account that is next comes first.
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """A place for as long as the block lasts."""
        await self.take(who)
        try:
            yield
        finally:
            self.leave(who)

    async def take(self, who: str) -> None:
        """Wait for a place."""
        mine = asyncio.get_running_loop().create_future()
        self._queues.setdefault(who, deque()).append(mine)
        self._call()
        try:
            await mine
        except asyncio.CancelledError:
            if not mine.cancelled():  # it was called at the same moment
                self.leave(who)
            raise

    def leave(self, who: str) -> None:
        """Free a place."""
        self._free += 1
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]
        if who in self._queues:
            self._queues.move_to_end(who)
        self._call()

    def _call(self) -> None:
        """Give free places to those who are next; each account then goes behind the others."""
        while self._free and (who := self._next()) is not None:
            self._queues[who].popleft().set_result(None)
            self._free -= 1
            self._taken[who] += 1
            self._queues.move_to_end(who)
            if not self._queues[who]:
                del self._queues[who]

    def _next(self) -> str | None:
        """The first account that waits and may have another place."""
        for who, queue in list(self._queues.items()):
            while queue and queue[0].done():  # no longer wanted
                queue.popleft()
            if not queue:
                del self._queues[who]
            elif self._taken[who] < self._each:
                return who
        return None
