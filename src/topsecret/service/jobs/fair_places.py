"""A number of places that people take in turns: nobody waits behind all questions of another.

>>> from threading import Event
>>> places = FairPlaces(1, Event())
>>> places.take("ann")
>>> waiting = [places._enqueued(who) for who in ("ann", "ann", "bob")]
>>> places.leave(), places.leave()
(None, None)
>>> [one.called for one in waiting]  # bob comes before ann's second
[True, False, True]
"""

from __future__ import annotations

from collections import OrderedDict, deque
from threading import Condition, Event

from topsecret.errors import Closing

_GLANCE = 1.0


class _Waiting:
    """Somebody who waits."""

    __slots__ = ("called",)

    def __init__(self) -> None:
        self.called = False


class FairPlaces:
    """A semaphore that goes round among persons, first come, first served for each of them.

    The closing of the service interrupts those who wait, and so does ``stopped``.
    """

    def __init__(self, number: int, closing: Event) -> None:
        self._free, self._changed, self._closing = number, Condition(), closing
        # Those who wait; the person who is next comes first.
        self._queues: OrderedDict[str, deque[_Waiting]] = OrderedDict()

    def take(self, who: str = "", stopped: Event | None = None) -> None:
        """Wait for a place."""
        with self._changed:
            mine = self._enqueued(who)
            self._call()
            while not self._closing.is_set() and not (stopped is not None and stopped.is_set()):
                if mine.called:
                    return
                self._changed.wait(_GLANCE)
            self._give_up(who, mine)
        raise Closing("the question was ended before the data were read")

    def leave(self) -> None:
        """Free a place."""
        with self._changed:
            self._free += 1
            self._call()

    def wake(self) -> None:
        """Let everybody who waits look whether they were stopped."""
        with self._changed:
            self._changed.notify_all()

    def _enqueued(self, who: str) -> _Waiting:
        mine = _Waiting()
        self._queues.setdefault(who, deque()).append(mine)
        return mine

    def _give_up(self, who: str, mine: _Waiting) -> None:
        if mine.called:
            self._free += 1
            self._call()
            return
        queue = self._queues[who]
        queue.remove(mine)
        if not queue:
            del self._queues[who]

    def _call(self) -> None:
        """Give free places to those who are next; each person then goes behind the others."""
        while self._free and self._queues:
            who, queue = next(iter(self._queues.items()))
            queue.popleft().called = True
            self._free -= 1
            if queue:
                self._queues.move_to_end(who)
            else:
                del self._queues[who]
        self._changed.notify_all()
