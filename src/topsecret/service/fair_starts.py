"""Requests begin a few at a time, addresses in turns: nobody waits many times for everybody else.

An event loop goes round among all that is under way, and every request takes several rounds. With a
thousand requests at once a round would be long, and a short request, the health's, would wait for
several such rounds. So a round begins few requests; the others wait for theirs, holding nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from contextlib import suppress
from ipaddress import ip_network

MOST = 8
"""How many requests one round of the event loop begins."""


class FairStarts:
    """Who may begin, first come, first served for each address."""

    def __init__(self) -> None:
        self._left, self._called = MOST, False
        # Those who wait; the address that is next comes first.
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def turn(self, host: str) -> None:
        """Wait until a request from there may begin."""
        self._next_round()
        if self._left and not self._queues:
            self._left -= 1
            return
        mine = asyncio.get_running_loop().create_future()
        self._queues.setdefault(network(host), deque()).append(mine)
        await mine

    def _next_round(self) -> None:
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """A new round: let those begin who are next; each address then goes behind the others."""
        self._left, self._called = MOST, False
        while self._left and self._queues:
            who, queue = self._queues.popitem(last=False)
            mine = queue.popleft()
            if queue:
                self._queues[who] = queue
            if not mine.done():  # otherwise no longer wanted
                mine.set_result(None)
                self._left -= 1
        if self._queues:
            self._next_round()


def network(host: str) -> str:
    """An address; of IPv6 the network, which one person has.

    >>> network("192.0.2.7"), network("2001:db8::7%eth0")
    ('192.0.2.7', '2001:db8::/64')
    """
    if ":" in host:
        with suppress(ValueError):
            return str(ip_network(f"{host.partition('%')[0]}/64", strict=False))
    return host
