"""Rate limits: a bucket of tokens for each kind of request and each account or address.

>>> limits = Limits({"question": 2})
>>> [limits.wait("question", "ann", now=0.0) for _ in range(3)]
[0, 0, 30]
>>> limits.wait("question", "ann", now=30.0)
0
>>> limits.give_back("question", "ann")
>>> limits.wait("question", "ann", now=30.0)
0
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

MOST_BUCKETS = 50_000


class Limits:
    """So many a minute, or in other ``seconds``; each worker process counts for itself."""

    def __init__(
        self, per_minute: Mapping[str, int], seconds: Mapping[str, float] | None = None
    ) -> None:
        self._per_minute = dict(per_minute)
        self._seconds = dict.fromkeys(per_minute, 60.0) | dict(seconds or {})
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}

    def wait(self, kind: str, who: str, *, now: float | None = None) -> int:
        """0 when there is a token, which is taken; otherwise the seconds until there is one."""
        moment = time.monotonic() if now is None else now
        most = self._per_minute[kind]
        if len(self._buckets) > MOST_BUCKETS:
            self._forget_the_fullest(moment)
        tokens, last = self._buckets.get((kind, who), (float(most), moment))
        tokens = min(most, tokens + (moment - last) * most / self._seconds[kind])
        if tokens < 1:
            self._buckets[kind, who] = tokens, moment
            return max(1, math.ceil((1 - tokens) * self._seconds[kind] / most))
        self._buckets[kind, who] = tokens - 1, moment
        return 0

    def _forget_the_fullest(self, moment: float) -> None:
        """Keep the emptier half: whoever comes from many addresses must not free another's."""

        def tokens(key: tuple[str, str]) -> float:
            left, last = self._buckets[key]
            most = self._per_minute[key[0]]
            return min(1.0, left / most + (moment - last) / self._seconds[key[0]])

        kept = sorted(self._buckets, key=tokens)[: MOST_BUCKETS // 2]
        self._buckets = {key: self._buckets[key] for key in kept}

    def give_back(self, kind: str, who: str) -> None:
        """The token that was taken before it was known that it need not be."""
        if (kind, who) in self._buckets:
            tokens, last = self._buckets[kind, who]
            self._buckets[kind, who] = min(self._per_minute[kind], tokens + 1), last
