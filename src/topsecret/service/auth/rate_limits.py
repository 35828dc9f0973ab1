"""Rate limits: a bucket of tokens for each kind of request and each account or address.

>>> limits = Limits({"question": 2})
>>> [limits.wait("question", "ann", now=0.0) for _ in range(3)]
[0, 0, 30]
>>> limits.wait("question", "ann", now=30.0)
0
>>> limits.give_back("question", "ann")
>>> limits.wait("question", "ann", now=30.0)
0
>>> limits = Limits({"run": 100}, {"run": DAY})
>>> [limits.wait("run", "ann", 60, now=0.0) for _ in range(2)]
[0, 17280]
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping

MOST_BUCKETS = 50_000
MINUTE = 60
DAY = 86400


class Limits:
    """So many a minute, or in other ``seconds``; each worker process counts for itself."""

    def __init__(self, most: Mapping[str, int], seconds: Mapping[str, int] = {}) -> None:
        self._most = dict(most)
        self._seconds = dict.fromkeys(most, MINUTE) | dict(seconds)
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait(self, kind: str, who: str, number: int = 1, *, now: float | None = None) -> int:
        """0 when there are so many tokens, which are taken; otherwise the seconds until then."""
        with self._lock:
            return self._wait(kind, who, number, time.monotonic() if now is None else now)

    def _wait(self, kind: str, who: str, number: int, moment: float) -> int:
        most, seconds = self._most[kind], self._seconds[kind]
        if len(self._buckets) > MOST_BUCKETS:
            self._forget_the_fullest(moment)
        tokens, last = self._buckets.get((kind, who), (float(most), moment))
        tokens = min(most, tokens + (moment - last) * most / seconds)
        if tokens < number:
            self._buckets[kind, who] = tokens, moment
            return max(1, math.ceil((number - tokens) * seconds / most))
        self._buckets[kind, who] = tokens - number, moment
        return 0

    def _forget_the_fullest(self, moment: float) -> None:
        """Keep the emptier half: whoever comes from many addresses must not free another's."""

        def tokens(key: tuple[str, str]) -> float:
            left, last = self._buckets[key]
            return min(1.0, left / self._most[key[0]] + (moment - last) / self._seconds[key[0]])

        kept = sorted(self._buckets, key=tokens)[: MOST_BUCKETS // 2]
        self._buckets = {key: self._buckets[key] for key in kept}

    def give_back(self, kind: str, who: str) -> None:
        """The token that was taken before it was known that it need not be."""
        with self._lock:
            if (kind, who) in self._buckets:
                tokens, last = self._buckets[kind, who]
                self._buckets[kind, who] = min(self._most[kind], tokens + 1), last
