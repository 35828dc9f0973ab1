"""A number of places that people take in turns: nobody waits behind all questions of another.

>>> from threading import Event
>>> places = FairPlaces(1, Event())
>>> places.take("ann")
>>> waiting = [places._enqueued(who) for who in ("ann", "ann", "bob")]
>>> places.leave(), places.leave()
(None, None)
>>> [one.called for one in waiting]  # bob comes before ann's second
[True, False, True]

Where a person may hold so many at most, the others are free for somebody else:

>>> places = FairPlaces(2, Event(), 1)
>>> places.take("ann"), places.take("bob")
(None, None)
>>> second = places._enqueued("ann")
>>> places.leave("bob"), second.called
(None, False)
>>> places.leave("ann"), second.called
(None, True)
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from threading import Condition, Event

from topsecret.errors import Closing

_GLANCE = 1.0


class _Waiting:
    """Somebody who waits."""

    __slots__ = ("called",)

    def __init__(self) -> None:
        self.called = False


class FairPlaces:
    """A semaphore that goes round among people, first come, first served for each of them.

    The closing of the service interrupts those who wait, and so does ``stopped``. ``most`` is how
    many places one person may hold at once; None for all.
    """

    def __init__(self, number: int, closing: Event, most: int | None = None) -> None:
        self._free, self._changed, self._closing = number, Condition(), closing
        self._most, self._held = most, Counter[str]()
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

    def leave(self, who: str = "") -> None:
        """Free a place of this person's."""
        with self._changed:
            self._free_one(who)

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
            self._free_one(who)
            return
        queue = self._queues[who]
        queue.remove(mine)
        if not queue:
            del self._queues[who]

    def _free_one(self, who: str) -> None:
        self._free += 1
        self._held[who] -= 1
        if not self._held[who]:
            del self._held[who]
        self._call()

    def _call(self) -> None:
        """Give free places to those who are next; each person then goes behind the others."""
        while self._free and (who := self._next()) is not None:
            queue = self._queues[who]
            queue.popleft().called = True
            self._free -= 1
            self._held[who] += 1
            if queue:
                self._queues.move_to_end(who)
            else:
                del self._queues[who]
        self._changed.notify_all()

    def _next(self) -> str | None:
        """Who is next of those who wait and may hold one more; None for nobody."""
        most = self._most
        return next((who for who in self._queues if most is None or self._held[who] < most), None)
