"""Rate limits: a bucket of tokens for each kind of request and each account or address.

>>> limits = Limits({"question": 2})
>>> [limits.wait("question", "ann", now=0.0) for _ in range(3)]
[0, 0, 30]
>>> limits.wait("question", "ann", now=30.0)
0
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

MOST_BUCKETS = 50_000


class Limits:
    """So many a minute; each worker process counts for itself."""

    def __init__(self, per_minute: Mapping[str, int]) -> None:
        self._per_minute = dict(per_minute)
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}

    def wait(self, kind: str, who: str, *, now: float | None = None, take: float = 1.0) -> int:
        """0 when there is a token, which is taken; otherwise the seconds until there is one."""
        moment = time.monotonic() if now is None else now
        most = self._per_minute[kind]
        if len(self._buckets) > MOST_BUCKETS:
            self._forget_the_fullest(moment)
        tokens, last = self._buckets.get((kind, who), (float(most), moment))
        tokens = min(most, tokens + (moment - last) * most / 60)
        if tokens < 1:
            self._buckets[kind, who] = tokens, moment
            return max(1, math.ceil((1 - tokens) * 60 / most))
        self._buckets[kind, who] = tokens - take, moment
        return 0

    def _forget_the_fullest(self, moment: float) -> None:
        """Keep the emptier half: whoever comes from many addresses must not free another's."""

        def tokens(key: tuple[str, str]) -> float:
            left, last = self._buckets[key]
            most = self._per_minute[key[0]]
            return min(1.0, left / most + (moment - last) / 60)

        kept = sorted(self._buckets, key=tokens)[: MOST_BUCKETS // 2]
        self._buckets = {key: self._buckets[key] for key in kept}

    def full(self, kind: str, who: str) -> int:
        """As ``wait``, without taking a token."""
        return self.wait(kind, who, take=0.0)
