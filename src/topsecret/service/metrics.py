"""Numbers for Prometheus: requests by route and outcome, questions by how they ended.

No number depends on data beyond what answers publish: there is no histogram of engine times.
"""

from __future__ import annotations

import os
import tempfile

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    multiprocess,
)

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """One worker's counters; with several workers the sums of all are shown."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "topsecret_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self._questions = Counter(
            "topsecret_questions", "Questions by their end.", ("state",), registry=self._registry
        )
        self._log_ins = Counter(
            "topsecret_log_ins", "Log-ins by outcome.", ("outcome",), registry=self._registry
        )
        self._hangs = Counter(
            "topsecret_hangs",
            "How often a dataset no longer answered.",
            ("dataset",),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "topsecret_request_seconds",
            "How long requests took, which do not wait for engines.",
            ("route",),
            buckets=(0.005, 0.025, 0.1, 0.5, 2.5, 10.0),
            registry=self._registry,
        )
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = route, method, status
        children = self._children.get(key)
        if children is None:
            counted = self._requests.labels(route, method, str(status))
            children = self._children[key] = counted, self._seconds.labels(route)
        children[0].inc()
        children[1].observe(seconds)

    def question(self, state: str) -> None:
        """Count a question that ended."""
        self._questions.labels(state).inc()

    def hang(self, dataset: str) -> None:
        """Count a dataset that no longer answers."""
        self._hangs.labels(dataset).inc()

    def log_in(self, outcome: str) -> None:
        """Count a log-in."""
        self._log_ins.labels(outcome).inc()

    def text(self) -> bytes:
        """All numbers in Prometheus' format."""
        if MULTIPROCESS not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # not typed
        return generate_latest(registry)


def share_between_workers() -> tempfile.TemporaryDirectory[str]:
    """A folder through which worker processes add up their counters; before any is started."""
    folder = tempfile.TemporaryDirectory(prefix="topsecret-metrics-")
    os.environ[MULTIPROCESS] = folder.name
    return folder
