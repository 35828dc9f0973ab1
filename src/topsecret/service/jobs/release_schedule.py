"""Turns: who may count now, and when the ledger hears of the end.

All ticks lie on one grid. A question begins at the first tick after it was asked: who asks cannot
choose how far from a tick it begins, and questions asked one after the other within a tick tell no
finer times than one. Then it is checked and reserved, whatever the engines are doing: what it waits
for until then is public computing. It waits for an engine, is counted and drawn, frees the engine
and waits for the next tick before the ledger is told. So everything that anybody can see of a
ledger, of what is left and of who is admitted moves at ticks.
"""

from __future__ import annotations

import math
import time
from threading import Condition, Event

from topsecret.errors import Closing
from topsecret.ledger import SettlementTime

AT_ONCE = 200
"""How many questions of one worker process may wait for an engine or for their tick; more wait to
be reserved, and a place is free at ticks alone."""

_GLANCE = 1.0


class _Places:
    """A semaphore that the closing of the service interrupts."""

    def __init__(self, number: int, closing: Event) -> None:
        self._free, self._changed, self._closing = number, Condition(), closing

    def take(self) -> None:
        with self._changed:
            while self._free == 0 and not self._closing.is_set():
                self._changed.wait(_GLANCE)
            if self._closing.is_set():
                raise Closing("the service stops; the question is kept for the next start")
            self._free -= 1

    def leave(self) -> None:
        with self._changed:
            self._free += 1
            self._changed.notify()


class Turns:
    """The turns of one worker process."""

    def __init__(self, engines: int, tick: float) -> None:
        self.tick, self.closing = tick, Event()
        self.preparing = _Places(engines, self.closing)
        self.counting = _Places(engines, self.closing)
        # Many may have the same tick: few at a time go to the store, and none is turned away.
        self.settling = _Places(engines, Event())

    def start(self, asked: float) -> float:
        """The first tick at which a question may begin."""
        return math.ceil(asked / self.tick) * self.tick

    def begin(self, asked: float) -> None:
        """Wait for that tick, never longer than one whatever becomes of the clock."""
        time.sleep(max(0.0, min(self.start(asked) - time.time(), self.tick)))

    def next_tick(self, asked: float) -> float:
        """A tick, at least one after that at which the question began, and not in the past."""
        start = self.start(asked)
        return start + max(1, math.ceil((time.time() - start) / self.tick)) * self.tick


class Turn(SettlementTime):
    """One question on its way through: prepared, reserved, counted, held until its tick."""

    def __init__(self, turns: Turns, asked: float) -> None:
        self._turns = turns
        self.asked = asked
        self._holds: _Places | None = None
        self.longer = turns.tick
        self.shown: float | None = None
        """The tick at which the ledger heard of the end, once it is known."""

    def __enter__(self) -> Turn:
        self._take(self._turns.preparing)
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def polling(self, seconds: float) -> None:
        """Wait for another with the same question, in nobody's way."""
        self._leave()
        time.sleep(seconds)
        self._take(self._turns.preparing)

    def reading(self) -> None:
        """Wait for an engine."""
        self._leave()
        self._take(self._turns.counting)

    def ending(self) -> None:
        """Free the engine and wait for the tick; what was not even begun ends at once."""
        begun = self._holds is self._turns.counting
        self._leave()
        if begun:
            self.shown = self._turns.next_tick(self.asked)
            # Never longer than a tick, whatever becomes of the clock.
            time.sleep(max(0.0, min(self.shown - time.time(), self._turns.tick)))
        self._take(self._turns.settling)

    def _take(self, places: _Places) -> None:
        places.take()
        self._holds = places

    def _leave(self) -> None:
        if self._holds is not None:
            self._holds.leave()
            self._holds = None
