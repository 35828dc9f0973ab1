"""Turns: who may count now, and when the ledger hears of the end.

All ticks lie on one grid. A question is checked and reserved when it is asked, whatever the engines
are doing: what it waits for until then is public computing. Counting begins at the first tick after
that: an asker cannot choose how far from a tick it begins, neither by the time of asking nor by a
question that is long to plan, as long as an engine is free for them. It waits for an engine, is
counted and drawn, frees the engine and waits for the next tick before the ledger is told. So
everything that counting moves in a ledger, in what is left and in who is admitted moves at ticks.
(Engines change hands between ticks: docs/service.md says what that tells where all are busy.)

One account has all engines of a source but one at most, where there are several: its long questions
leave one for the others.

A cancel is heard at the next tick, too: what is done by then is answered, what has an engine by
then stays charged, and what has none is given back. Whoever cancels chooses a tick and nothing
finer, so that a cancel measures no more than the answer's own tick tells.

A question that does not end though its time is up (a network folder that hangs cannot be
interrupted) lends its place to others. What else is asked of its dataset is not begun, or given
back at a tick, and tried again until the dataset answers: it is in nobody's way. That a dataset
hangs, and that it answers again, holds from ticks on as well: whoever probes it with questions of
their own sees the tick at which the first one's end is shown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock
from time import monotonic

from topsecret.errors import Closing, SourceError
from topsecret.ledger import SettlementTime
from topsecret.service.jobs.fair_places import FairPlaces
from topsecret.sources.running_statement import Stop

TIME_LIMIT, CANCELLED = "time_limit", "cancelled"
AT_ONCE = 200
"""How many questions about one source may wait for an engine or for their tick in one worker
process; more wait to be reserved, and a place is free at ticks alone."""
STUCK = 10.0
"""Seconds beyond the time limit; a question that holds a place at the next tick is stuck."""

Events = tuple[str, str]
"""What a question reads: its dataset, and where the events are by now."""


class Lane:
    """The places of one source: what waits for a database that is locked is in no other's way."""

    def __init__(self, engines: int, closing: Event) -> None:
        self.preparing = FairPlaces(engines, closing)
        # One is free for others however long somebody's questions are; a single one is for all.
        self.counting = FairPlaces(engines, closing, engines - 1 or None)


class Turns:
    """The turns of one worker process: for all files together, and for each database."""

    def __init__(self, engines: int, tick: float, limit: float = math.inf) -> None:
        self.tick, self.limit, self.closing = tick, limit, Event()
        self._engines, self._lanes = engines, {"": Lane(engines, self.closing)}
        self.preparing, self.counting = self._lanes[""].preparing, self._lanes[""].counting
        # Many may have the same tick: few at a time go to the store, and none is turned away.
        self.settling = FairPlaces(engines, Event())
        self._holders, self._lock = set[Turn](), Lock()
        self._seen_hanging = frozenset[Events]()
        self.noticed: Callable[[str, bool], None] = lambda dataset, hangs: None
        """Told of a dataset that hangs, and of one that answers again."""

    def lane(self, source: str = "") -> Lane:
        """Where questions about a source wait; files have an empty name."""
        return self._lanes.setdefault(source, Lane(self._engines, self.closing))

    def hold(self, turn: Turn) -> None:
        """A question has a place, and may keep it for too long."""
        with self._lock:
            self._holders.add(turn)

    def let_go(self, turn: Turn) -> None:
        """A question has none, and what it ended with is shown."""
        with self._lock:
            self._holders.discard(turn)

    def hanging(self) -> frozenset[Events]:
        """The events that a question is stuck with."""
        with self._lock:
            now = time.time()
            stuck = [turn.events for turn in self._holders if now >= turn.stuck_from]
        return frozenset(events for events in stuck if events is not None)

    def look(self) -> None:
        """Tell of what hangs now and did not before, or the other way round: ticks decide that."""
        now, before = self.hanging(), self._seen_hanging
        self._seen_hanging = now
        for changed, hangs in ((now - before, True), (before - now, False)):
            for dataset, _ in sorted(changed):
                with suppress(Exception):  # a log that cannot be written ends no clock
                    self.noticed(dataset, hangs)

    def stuck_from(self) -> float:
        """The tick from which a question that takes a place now is stuck with it."""
        return math.inf if math.isinf(self.limit) else self.start(time.time() + self.limit + STUCK)

    def patience(self) -> float:
        """Seconds in which a question that has an engine at once has ended, or hangs."""
        return self.limit + STUCK + 2 * self.tick

    def start(self, reserved: float) -> float:
        """The first tick at which a question that is reserved by then may be counted."""
        return math.ceil(reserved / self.tick) * self.tick

    def begin(self, reserved: float) -> None:
        """Wait for that tick, never longer than one whatever becomes of the clock."""
        time.sleep(max(0.0, min(self.start(reserved) - time.time(), self.tick)))

    def next_tick(self, reserved: float) -> float:
        """A tick, at least one after that at which counting began, and not in the past."""
        start = self.start(reserved)
        return start + max(1, math.ceil((time.time() - start) / self.tick)) * self.tick


class Turn(SettlementTime):
    """One question on its way through: prepared, reserved, counted, held until its tick."""

    def __init__(self, turns: Turns, who: str = "", source: str = "") -> None:
        self._turns, self._lane, self._who = turns, turns.lane(source), who
        self._reserved, self._unwanted_from = time.time(), math.inf
        self.stop = Stop()
        self._counted_since: float | None = None
        self._holds: FairPlaces | None = None
        self._lent, self._lock = False, Lock()
        self.stuck_from = math.inf
        """The tick from which its place is no longer its own; never for one that ends before."""
        self.events: Events | None = None
        """What it reads, once that is known."""
        self.recheck: Callable[[], None] = lambda: None
        """Raises a ``SourceError`` where that is not what it was when the question was reserved."""
        self.put_back: Callable[[str, str | None], None] = lambda analyst, request: None
        """Raises a ``Closing`` where the same question of another is to be waited for."""
        self.longer = 2 * turns.tick
        self.shown: float | None = None
        """The tick at which the ledger heard of the end, once it is known."""

    def __enter__(self) -> Turn:
        self._take(self._lane.preparing)
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def about(self, events: Events) -> None:
        """It is going to read these events, unless they hang."""
        self.events = events
        self._check_that_it_answers()

    def polling(self, seconds: float) -> None:
        """Wait for another with the same question, in nobody's way."""
        self._leave()
        time.sleep(seconds)
        self._take(self._lane.preparing)

    def outwaited(self, analyst: str, request_id: str | None) -> None:
        """Wait for another that takes long without a thread: to be tried again later."""
        self.put_back(analyst, request_id)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Wait for something public, in nobody's way; the time limit runs."""
        self._leave()
        self._counted_since = monotonic()
        try:
            yield
        finally:
            self._counted_since = None
        self._take(self._lane.preparing)

    def reading(self) -> None:
        """Wait for the tick, then for an engine; from then on the time limit runs."""
        self._leave()
        self._reserved = time.time()
        self._turns.begin(self._reserved)
        self._take(self._lane.counting)
        self._counted_since = monotonic()
        self.recheck()

    def look_at_the_clock(self) -> None:
        """End what has taken too long, and tell the engine again of what was to end."""
        since, limit = self._counted_since, self._turns.limit
        if since is not None and monotonic() - since > limit:
            self.stop.now(TIME_LIMIT)
        elif self.stop.asked.is_set():
            self.stop.now(self.stop.why)
        elif time.time() >= self._unwanted_from:
            self.stop.now(CANCELLED)
            self._lane.preparing.wake()
            self._lane.counting.wake()
        with self._lock:
            if self._holds is not None and not self._lent and time.time() >= self.stuck_from:
                self._lent = True
                self._holds.leave(self._who)

    def cancel(self) -> None:
        """Somebody no longer wants the answer: heard at the next tick."""
        self._unwanted_from = min(self._unwanted_from, self._turns.start(time.time()))

    def drawn(self) -> None:
        """Choose the tick; an answer that misses the one of a cancel is thrown away."""
        if self._too_late(self._choose_tick()):
            raise SourceError("the question was ended while its data were read")

    def ending(self) -> None:
        """Free the engine and wait for the tick, unless the service stops before it was begun."""
        begun = self._holds is self._lane.counting
        self._counted_since = None
        if begun or not self._turns.closing.is_set():
            shown = self.shown or self._choose_tick()
            self._free()
            self._too_late(shown)  # why it failed is told by the tick as well
            # Never longer than a tick, whatever becomes of the clock.
            time.sleep(max(0.0, min(shown - time.time(), self._turns.tick)))
        self._leave()  # after the tick: from now on its dataset answers
        # What was read is settled, whoever wants it no longer.
        self._turns.settling.take(self._who)
        self._holds = self._turns.settling

    def _take(self, places: FairPlaces) -> None:
        self._check_that_it_answers()
        places.take(self._who, self.stop.asked)
        try:
            self._check_that_it_answers()  # still: the place may be one that was lent
        except Closing:
            places.leave(self._who)
            raise
        with self._lock:
            self._holds, self.stuck_from = places, self._turns.stuck_from()
        self._turns.hold(self)
        if time.time() >= self._unwanted_from:  # though nobody has looked at the clock since
            self._leave()
            self.stop.now(CANCELLED)
            raise Closing("the question was ended before the data were read")

    def _check_that_it_answers(self) -> None:
        if self.events is not None and self.events in self._turns.hanging():
            raise Closing("the dataset does not answer: the question is tried again later")

    def _too_late(self, shown: float) -> bool:
        """Whether what is shown at a tick comes after that of a cancel."""
        late = shown > self._unwanted_from + self._turns.tick / 2  # both are ticks, in floats
        if late:
            self.stop.now(CANCELLED)
        return late

    def _choose_tick(self) -> float:
        """The tick of the end; what ends by the one from which it would be stuck never is."""
        self.shown = self._turns.next_tick(self._reserved)
        if self.shown < self.stuck_from + self._turns.tick / 2:  # both are ticks, in floats
            self.stuck_from = math.inf
        return self.shown

    def _free(self) -> None:
        """Let others have the place."""
        with self._lock:
            if self._holds is not None and not self._lent:
                self._holds.leave(self._who)
            self._holds, self._lent = None, False

    def _leave(self) -> None:
        """The same, with nothing behind it that is still to be shown."""
        self._free()
        self.stuck_from = math.inf
        self._turns.let_go(self)
