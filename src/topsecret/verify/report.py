"""What a check found, in numbers that can be shown: the histograms are synthetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from typing import Any

from topsecret.errors import VerificationFailed
from topsecret.verify.neighbours import Neighbourhood


def described(mechanism: object) -> str:
    """A mechanism with the parameters that are not its defaults.

    >>> from topsecret.mechanisms import GumbelTopK
    >>> described(GumbelTopK(k=2, scale=2 / 3, smallest=True))
    'GumbelTopK(k=2, scale=0.666667, smallest=True)'
    """
    if not is_dataclass(mechanism):
        return str(mechanism)
    named = [
        (field.name, getattr(mechanism, field.name), field.default) for field in fields(mechanism)
    ]
    shown = [
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
        for name, value, default in named
        if default is MISSING or value != default
    ]
    return f"{type(mechanism).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One divergence beside its claim."""

    histogram: Mapping[str, int]
    """The counts on one side."""
    neighbour: Mapping[str, int]
    """The counts on the other side."""
    epsilon: float
    """At which the divergence was computed."""
    divergence: float
    """For a comparison that holds a float above the divergence, for a broken one below it."""
    claim: float
    """The delta that the mechanism claims there."""

    @property
    def margin(self) -> float:
        """Claim minus divergence: negative when the claim is broken."""
        return self.claim - self.divergence

    def __str__(self) -> str:
        return (
            f"at epsilon={self.epsilon:.6g} between {dict(self.histogram)} and "
            f"{dict(self.neighbour)}: divergence {self.divergence:.6g}, claim {self.claim:.6g}"
        )


@dataclass(frozen=True, slots=True)
class PrivacyReport:
    """What ``check_privacy`` looked at and what it found."""

    mechanism: str
    """The mechanism with its parameters."""
    neighbourhood: Neighbourhood
    """Which histograms are neighbours."""
    items: int
    """How many items the histograms have."""
    max_count: int
    """The largest count."""
    tall: int
    """Two items were also looked at with counts up to this."""
    histograms: int
    """How many histograms were looked at."""
    pairs: int
    """Ordered pairs of neighbours: both directions count."""
    outcomes: int
    """How many answers are possible."""
    points: int
    """Epsilons at which divergences were compared with the claim."""
    comparisons: int
    """How many divergences were compared with the claim."""
    tightest: Comparison | None
    """The largest share of its claim that a divergence reached."""
    broken: Comparison | None
    """The worst counterexample, if there is one."""
    undecided: tuple[Comparison, ...]
    """Comparisons that are equal as far as 1024 bits see."""
    equality_proved: bool
    """Whether the mechanism states, with a proof beside its code, that it meets its claim."""
    between: float
    """No divergence exceeds the claim by more than this at an epsilon that is *not* a point."""

    @property
    def failure(self) -> str | None:
        """What is wrong, with the counterexample, or ``None``."""
        if self.broken is not None:
            return f"{self.mechanism} breaks its claim {self.broken}"
        if self.undecided and not self.equality_proved:
            return (
                f"{self.mechanism} cannot be told from its claim in {len(self.undecided)} "
                f"comparisons, first {self.undecided[0]}; if it meets the claim exactly, prove "
                "it in its note and set meets_claim_exactly"
            )
        return None

    @property
    def passed(self) -> bool:
        """Whether every comparison holds."""
        return self.failure is None

    def require(self) -> PrivacyReport:
        """This report, or ``VerificationFailed`` with the counterexample."""
        if self.failure is not None:
            raise VerificationFailed(self.failure)
        return self

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON takes it."""
        fields = asdict(self)
        fields["undecided"] = len(self.undecided)
        return {**fields, "passed": self.passed}
