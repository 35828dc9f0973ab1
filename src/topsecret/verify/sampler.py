"""The sampler test: do the answers that a mechanism draws follow the law that it states?

**The alarm rate is a theorem**, not an asymptotic approximation: a correct sampler is rejected
with probability at most ``alarm_rate``, for every number of samples. Three tests share it.

- *Support.* An answer of probability 0 rejects at once; a correct sampler never gives one.
- *Events* (half of the rate). Each outcome, and each beginning of a list, is an event that
  happens X times in n samples where X is binomial with its exact probability p. By Chernoff,
  P[X/n ≥ f] ≤ exp(−n·KL(f‖p)) for f ≥ p, and so on the other side. With m events each side gets
  alarm_rate/(4m), so an event rejects when n·KL(f‖p) > ln(4m/alarm_rate).
- *Sharpness* (the other half). A wrong noise scale makes a law sharper or flatter, roughly like
  P_b(o) ∝ P(o)^b. The average over several b of Π P_b(o_i)/P(o_i) has expectation 1 under P, so
  by Markov it exceeds 2/alarm_rate with probability at most alarm_rate/2. It gathers small
  deviations of all outcomes, as the best test against each P_b does.

The G statistic of the outcomes (those with less than 10 expected pooled into one cell), with its
usual chi-square p-value, is shown beside them and decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from flint import arb

from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter, VerificationFailed
from topsecret.exact.rounding import Number, ball, precision
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.mechanisms.selection import Outcome
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.verify.report import described

_BITS = 192
_LEAST_EXPECTED = 10
_SHARPNESS = (0.5, 0.8, 0.9, 0.95, 0.97, 1.03, 1.05, 1.1, 1.2, 1.5)


@dataclass(frozen=True, slots=True)
class SamplerReport:
    """What ``check_sampler`` drew and what it found."""

    mechanism: str
    """The mechanism with its parameters."""
    histogram: str
    """The counts, in words."""
    samples: int
    """How many answers were drawn."""
    outcomes: int
    """How many answers are possible."""
    events: int
    """How many events were compared."""
    alarm_rate: float
    """How often a right sampler is rejected, at most."""
    deviation: float
    """The largest n·KL over the events; rejects above ``deviation_limit``."""
    deviation_limit: float
    """The largest deviation that passes."""
    sharpness: float
    """The logarithm of the averaged likelihood ratio; rejects above ``sharpness_limit``."""
    sharpness_limit: float
    """The largest sharpness that passes."""
    g_statistic: float
    """The G statistic of the counts of answers."""
    degrees_of_freedom: int
    """Of the G statistic."""
    p_value: float
    """Of the G statistic, by the chi-square approximation: to be looked at, not to decide."""
    impossible: tuple[str, ...]
    """Answers that were drawn although their probability is 0."""
    rejection: str | None
    """Why the sampler is rejected, or ``None``."""

    @property
    def failure(self) -> str | None:
        """What is wrong, or ``None``."""
        if self.rejection is None:
            return None
        where = f"{self.mechanism} on {self.histogram}"
        return f"{where} does not draw what it states: {self.rejection}"

    @property
    def passed(self) -> bool:
        """Whether the samples are compatible with the stated law."""
        return self.rejection is None

    def require(self) -> SamplerReport:
        """This report, or ``VerificationFailed`` with the reason."""
        if self.failure is not None:
            raise VerificationFailed(self.failure)
        return self

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON takes it."""
        values = {**asdict(self), "passed": self.passed}
        return {
            name: None if isinstance(value, float) and not isfinite(value) else value
            for name, value in values.items()
        }


def check_sampler(
    mechanism: Mechanism,
    histogram: Histogram,
    samples: int,
    *,
    alarm_rate: Number = 1e-6,
    bits: BitSource | None = None,
    shown_as: str = "the histogram",
) -> SamplerReport:
    """Draw ``samples`` answers and compare them with the mechanism's exact law.

    The histogram must be synthetic: the report says how often it gave which answer.

    Parameters: ``mechanism``: which is drawn from; ``histogram``: made-up counts; ``samples``: how
    many answers are drawn; ``alarm_rate``: how often a right sampler fails the check; ``bits``:
    where randomness comes from; the operating system without it; ``shown_as``: what the report
    calls the histogram.
    """
    if samples < 1 or not 0 < alarm_rate < 1:
        raise InvalidParameter(
            f"samples={samples} must be at least 1 and alarm_rate={alarm_rate} between 0 and 1"
        )
    bits = SystemBits() if bits is None else bits  # one buffer for all draws
    drawn = Counter(mechanism.select(histogram, bits).outcome for _ in range(samples))
    with precision(_BITS):
        law = mechanism.probabilities(histogram)
        impossible = tuple(sorted(str(outcome) for outcome in drawn if outcome not in law))
        events = _events(law, drawn)
        deviations = {
            event: _deviation(count, probability, samples)
            for event, (probability, count) in events.items()
        }
        worst = max(deviations, key=lambda event: float(deviations[event]))
        deviation_limit = (arb(4 * len(events)) / ball(alarm_rate)).log()
        sharpness = _sharpness(law, drawn)
        sharpness_limit = (2 / ball(alarm_rate)).log()
        statistic, freedom, p_value = _g_test(law, drawn, samples)
        rejection = None
        if impossible:
            rejection = f"it drew {impossible[0]}, which has probability 0"
        elif not deviations[worst] <= deviation_limit:
            probability, count = events[worst]
            expected = float(probability) * samples
            rejection = f"{worst} came {count} times in {samples}, expected {expected:.1f}"
        elif not sharpness <= sharpness_limit:
            rejection = "the frequencies are sharper or flatter than the law"
    return SamplerReport(
        mechanism=described(mechanism),
        histogram=shown_as,
        samples=samples,
        outcomes=len(law),
        events=len(events),
        alarm_rate=float(alarm_rate),
        deviation=float(deviations[worst]),
        deviation_limit=float(deviation_limit),
        sharpness=float(sharpness),
        sharpness_limit=float(sharpness_limit),
        g_statistic=statistic,
        degrees_of_freedom=freedom,
        p_value=p_value,
        impossible=impossible,
        rejection=rejection,
    )


def _events(law: Mapping[Outcome, arb], drawn: Counter[Outcome]) -> dict[str, tuple[arb, int]]:
    """The probability and the number of every outcome and every beginning of an outcome."""
    events: dict[str, tuple[arb, int]] = {}
    beginnings: dict[Outcome, tuple[arb, int]] = {}
    for outcome, probability in law.items():
        events[str(outcome)] = probability, drawn[outcome]
        for length in range(1, len(outcome)):
            total, count = beginnings.get(outcome[:length], (arb(0), 0))
            beginnings[outcome[:length]] = total + probability, count + drawn[outcome]
    for beginning, event in beginnings.items():
        events[f"a list that begins with {beginning}"] = event
    return events


def _deviation(count: int, probability: arb, samples: int) -> arb:
    """n·KL(count/n ‖ p), with 0·ln 0 = 0."""
    total = arb(0)
    for seen, expected in (
        (count, samples * probability),
        (samples - count, samples * (1 - probability)),
    ):
        if seen:
            total += seen * (seen / expected).log() if expected > 0 else arb.pos_inf()
    return total


def _sharpness(law: Mapping[Outcome, arb], drawn: Counter[Outcome]) -> arb:
    """ln of the average over b of Π P_b(o)/P(o), where P_b is proportional to P^b."""
    logs = {outcome: probability.log() for outcome, probability in law.items() if probability > 0}
    if any(outcome not in logs for outcome in drawn):  # P_b gives it 0 for every b
        return arb.neg_inf()
    samples = drawn.total()
    seen = sum((drawn[outcome] * value for outcome, value in logs.items()), arb(0))
    average = arb(0)
    for power in _SHARPNESS:
        normaliser = sum(((power * value).exp() for value in logs.values()), arb(0)).log()
        average += (seen * (arb(power) - 1) - samples * normaliser).exp()
    return (average / len(_SHARPNESS)).log()


def _g_test(
    law: Mapping[Outcome, arb], drawn: Counter[Outcome], samples: int
) -> tuple[float, int, float]:
    cells: list[tuple[int, arb]] = []
    pooled: tuple[int, arb] = (0, arb(0))
    for outcome, probability in law.items():
        cell = drawn[outcome], samples * probability
        if cell[1] >= _LEAST_EXPECTED:
            cells.append(cell)
        else:
            pooled = pooled[0] + cell[0], pooled[1] + cell[1]
    if pooled[1] > 0:
        cells.append(pooled)
    statistic = sum(
        (2 * count * (count / expected).log() for count, expected in cells if count), arb(0)
    )
    freedom = max(1, len(cells) - 1)
    positive = statistic.nonnegative_part()
    p_value = (positive / 2).gamma_upper(arb(freedom) / 2, regularized=1)
    return float(statistic), freedom, float(p_value) if p_value.is_finite() else 1.0
