"""The whole verification: every mechanism, every parameter set, on as many cores as there are.

A mechanism names the parameter sets to check in its class method ``verification_cases``, next to
its code, so that a new mechanism is verified by being there.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter
from typing import Any

from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.verify.laws import needs_domain
from topsecret.verify.neighbours import Cube
from topsecret.verify.privacy import check_privacy
from topsecret.verify.report import PrivacyReport
from topsecret.verify.sampler import SamplerReport, check_sampler

ALARM_RATE = 1e-6
"""A whole run of correct samplers is rejected with at most this probability."""

# Ties, a gap of one and larger gaps. Without a public domain the counts stand far enough above
# the threshold of a small delta for both items and NOTHING to be drawn often.
_PUBLIC = {"a": 6, "b": 4, "c": 4, "d": 3}
_OBSERVED = {"a": 16, "b": 13, "c": 13, "d": 10, "e": 3}
_PERSONS = {"a": 4, "b": 2, "c": 1, "d": 1, "abc": 2}
"""How many people have these items, each letter one."""


@dataclass(frozen=True, slots=True)
class Task:
    """One check of one mechanism with its parameters."""

    mechanism: Mechanism
    """The mechanism with its parameters."""
    items: int
    """How many items the histograms have."""
    max_count: int
    """The largest count."""
    samples: int | None
    """How many answers to draw; ``None`` for the exhaustive check."""
    alarm_rate: float
    """How often a right sampler is rejected, at most."""

    def run(self) -> PrivacyReport | SamplerReport:
        """Do the check."""
        if self.samples is None:
            return check_privacy(self.mechanism, items=self.items, max_count=self.max_count)
        public = needs_domain(self.mechanism)
        counts = _PUBLIC if public else _OBSERVED
        histogram = Histogram.of(counts, domain=tuple(counts)) if public else Histogram.of(counts)
        counted = getattr(self.mechanism, "counted", None)
        if counted is not None:
            counts = _PERSONS
            names = tuple(_PERSONS)[:-1]
            persons = {f"{n} {i}": [*n] for n, number in counts.items() for i in range(number)}
            histogram = counted(persons, names if public else None)
        return check_sampler(
            self.mechanism,
            histogram,
            self.samples,
            alarm_rate=self.alarm_rate,
            shown_as=str(counts),
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """What a run found."""

    privacy: tuple[PrivacyReport, ...]
    """Laws against claims, one report for each mechanism."""
    samplers: tuple[SamplerReport, ...]
    """Samplers against laws."""
    seconds: float
    """How long it took."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return not self.failures()

    @property
    def alarm_rate(self) -> float:
        """At most how often a run of correct samplers fails."""
        return sum(report.alarm_rate for report in self.samplers)

    def failures(self) -> list[str]:
        """What failed and how, one text for each."""
        found = [
            *(report.failure for report in self.privacy),
            *(report.failure for report in self.samplers),
        ]
        return [failure for failure in found if failure is not None]

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON takes it."""
        return {
            "passed": self.passed,
            "alarm_rate": self.alarm_rate,
            "privacy": [report.to_dict() for report in self.privacy],
            "samplers": [report.to_dict() for report in self.samplers],
        }


def verifiable() -> dict[str, type[Mechanism]]:
    """The mechanisms that name parameter sets to check, by name.

    >>> {"GumbelTopK", "LimitedDomain"} <= set(verifiable())
    True
    """
    package = importlib.import_module("topsecret.mechanisms")
    named = {name: getattr(package, name) for name in package.__all__}
    return {name: kind for name, kind in named.items() if hasattr(kind, "verification_cases")}


def tasks(names: Sequence[str], items: int, max_count: int, samples: int) -> list[Task]:
    """The checks of the named mechanisms, of all if none is named; the slow ones first."""
    Cube(items, max_count)  # refuses what would not finish before anything runs
    known = verifiable()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidParameter(
            f"no mechanism is called {unknown[0]!r}; choose from {', '.join(sorted(known))}"
        )
    chosen = [known[name] for name in names] if names else list(known.values())
    cases: list[Mechanism] = [
        case
        for kind in chosen
        for case in kind.verification_cases()  # type: ignore[attr-defined]  # see verifiable()
    ]
    rate = ALARM_RATE / max(1, len(cases))
    draws = [Task(case, items, max_count, samples, rate) for case in cases] if samples else []
    return [*draws, *(Task(case, items, max_count, None, rate) for case in cases)]


def verify(
    names: Sequence[str] = (),
    *,
    items: int = 4,
    max_count: int = 4,
    samples: int = 10_000,
    processes: int | None = None,
    finished: Callable[[int, int], None] = lambda done, total: None,
) -> Verification:
    """Run the checks and gather what they found.

    Parameters: ``names``: which mechanisms; all without it; ``items``: how many items a histogram
    has, at most; ``max_count``: how large a count is, at most; ``samples``: how many answers of
    each sampler are drawn; ``processes``: how many work at once; one for each core without it;
    ``finished``: is told how many checks of how many are done.
    """
    start = perf_counter()
    todo = tasks(names, items, max_count, samples)
    processes = min(processes or os.cpu_count() or 1, len(todo))
    finished(0, len(todo))
    reports: list[PrivacyReport | SamplerReport]
    if processes <= 1:
        reports = []
        for done, task in enumerate(todo, 1):
            reports.append(task.run())
            finished(done, len(todo))
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            futures: list[Future[PrivacyReport | SamplerReport]] = [
                pool.submit(task.run) for task in todo
            ]
            for done, _ in enumerate(as_completed(futures), 1):
                finished(done, len(todo))
            reports = [future.result() for future in futures]
    return Verification(
        privacy=tuple(report for report in reports if isinstance(report, PrivacyReport)),
        samplers=tuple(report for report in reports if isinstance(report, SamplerReport)),
        seconds=perf_counter() - start,
    )
