"""Multi-label PATE: private labels from the votes of teachers, and a student that learns them.

`Aggregator` answers queries by a rule until its budget is used: `NoisyShares` with noisy shares of
the teachers, `NoisyMajority` and `StableLabels` with label sets; `noisy_shares`, `noisy_majority`
and `stable_labels` find the noise for a number of queries, `plan_answers` says what a budget buys.
`PateClassifier` is the whole way from private rows to a student as a scikit-learn estimator (extra
``pate``).

>>> rule = noisy_majority(labels=3, teachers=50, queries=20, epsilon=3, delta=1e-6)
>>> Aggregator(rule, epsilon=3, delta=1e-6, queries=20).left
20
"""

from typing import TYPE_CHECKING, Any

from topsecret.pate.aggregator import Aggregator, Answer, Guarantee
from topsecret.pate.calibration import noisy_majority, noisy_shares, stable_labels
from topsecret.pate.plan import PatePlan, plan_answers
from topsecret.pate.rules import NoisyMajority, StableLabels, VoteRule
from topsecret.pate.shares import NoisyShares

if TYPE_CHECKING:
    from topsecret.pate.pipeline import PateClassifier

__all__ = [
    "Aggregator",
    "Answer",
    "Guarantee",
    "NoisyMajority",
    "NoisyShares",
    "PateClassifier",
    "PatePlan",
    "StableLabels",
    "VoteRule",
    "noisy_majority",
    "noisy_shares",
    "plan_answers",
    "stable_labels",
]


def __getattr__(name: str) -> Any:
    """`PateClassifier` needs scikit-learn, which is imported only when it is asked for."""
    if name == "PateClassifier":
        from topsecret.pate.pipeline import PateClassifier

        return PateClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
