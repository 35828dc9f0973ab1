"""The whole way from private rows to a student, as a scikit-learn estimator (extra ``pate``).

>>> import numpy as np
>>> from sklearn.linear_model import RidgeClassifier
>>> from topsecret.pate.pipeline import PateClassifier
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(4000, 3))
>>> Y = (X + 0.1 * rng.normal(size=X.shape) > 0).astype(int)
>>> model = PateClassifier(RidgeClassifier(), teachers=200, epsilon=8)
>>> _ = model.fit(X[:3000], Y[:3000], public=X[3000:3500])
>>> model.score(X[3500:], Y[3500:]) > 0.8, model.epsilon_ <= 8
(True, True)

**What is protected.** One private row (or all rows of one group) being replaced by any other. The
student sees public rows and private answers only, so it and everything it predicts may be shown.
The teachers are dropped when ``fit`` ends: pickling the model does not pickle them.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from topsecret.errors import InvalidParameter, MissingExtra
from topsecret.exact.rounding import Number
from topsecret.mechanisms import parameters
from topsecret.noise.bits import SystemBits
from topsecret.pate import teachers as training
from topsecret.pate.aggregator import Aggregator
from topsecret.pate.calibration import noisy_majority, noisy_shares, stable_labels
from topsecret.pate.plan import (
    MOST,
    PatePlan,
    plan_answers,
    recommended_cut,
    recommended_queries,
)
from topsecret.pate.rules import VoteRule
from topsecret.pate.shares import NoisyShares
from topsecret.pate.students import ShareRidge, SoftStudent

try:
    from joblib import Parallel, delayed
    from sklearn.base import BaseEstimator, clone
except ImportError:
    raise MissingExtra(
        "topsecret.pate.pipeline needs scikit-learn: pip install '.[pate]' in the checkout"
    ) from None

T = TypeVar("T")


class PateClassifier(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A multi-label student that learns from the private votes of teachers.

    Parameters: ``estimator``: any multi-label classifier; the teachers are clones of it;
    ``student``: what learns from the answers, if another one; ``teachers``: how many vote;
    ``queries``: how many public rows are asked about; as many as the rule recommends without it;
    ``epsilon``: of all answers together; ``delta``: of all answers together; ``method``: how votes
    become answers; ``selection``: the noise of stable; ``max_votes``: cuts each ballot to so many
    labels; ``weight_limit``: weights ballots instead; ``expected_labels``: how many labels a row
    has, about, if that is public; ``threshold``: how shares become labels; ``adjacency``: whether
    a private row is replaced, or added and removed; ``n_jobs``: joblib's; ``progress``: whether to
    show a bar; ``X``: features, one row for each record; ``y``: labels, as zeros and ones;
    ``public``: features of rows that are no secret; ``groups``: whose row it is, to protect all
    rows of one; ``labels``: how many labels there are; ``public_rows``: how many public rows.

    ``method`` is
    "shares" (`NoisyShares`; ballots are whole, cut to ``max_votes`` labels or weighted by
    ``weight_limit``), "pate" or "pate-tau" (`NoisyMajority`, the latter with ``max_votes``),
    "stable" (`StableLabels`), or "auto": shares, with the cut that the public rule of ``plan.py``
    recommends, perhaps for ``expected_labels`` labels per row.

    The student of shares is `ShareRidge`, or ``student``: any regressor, or a classifier that takes
    sample weights (``students.py``). The student of label sets is a clone of ``estimator`` unless
    ``student`` is given.

    Guarantee: ``student_``, ``answers_`` and all predictions are together (epsilon, delta)-DP
    under replacing one private row (or one group's rows, with ``groups``).
    """

    def __init__(
        self,
        estimator: Any,
        *,
        student: Any = None,
        teachers: int = 100,
        queries: int | None = None,
        epsilon: Number = 4.0,
        delta: Number = 1e-6,
        method: Literal["auto", "shares", "stable", "pate", "pate-tau"] = "auto",
        selection: Literal["gumbel", "gaussian"] = "gumbel",
        max_votes: int | None = None,
        weight_limit: int | None = None,
        expected_labels: float | None = None,
        threshold: Literal["f1", "rates"] = "f1",
        adjacency: parameters.Adjacency = "replace",
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.estimator = estimator
        self.student = student
        self.teachers = teachers
        self.queries = queries
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.selection = selection
        self.max_votes = max_votes
        self.weight_limit = weight_limit
        self.expected_labels = expected_labels
        self.threshold = threshold
        self.adjacency = adjacency
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        public: Any,
        groups: Sequence[Hashable] | None = None,
    ) -> PateClassifier:
        """Train teachers on (X, y), label rows of ``public`` privately, train the student."""
        private, public = _matrix(X), _matrix(public)
        truth = np.asarray(y)
        if truth.ndim != 2 or len(truth) != private.shape[0]:
            raise InvalidParameter(
                f"y has the shape {truth.shape}; it must have one row for each row of X and one "
                "column of 0 and 1 for each label"
            )
        count = parameters.whole(self.teachers, "teachers")
        self._check()
        asked = self._asked(truth.shape[1], count, public.shape[0])
        parameters.at_most(asked, "queries", public.shape[0], "the number of public rows")
        training.rehearse(clone(self.estimator), public, truth.shape[1])
        rule = self._rule(truth.shape[1], count, asked)
        self.rule_ = rule
        bits = SystemBits()
        if groups is None:
            parts = training.split(private.shape[0], count, bits)
        else:
            parts = training.split_groups(groups, count, bits)
        seeds = [int.from_bytes(bits.take(8), "big") for _ in parts]
        work = (
            delayed(training.train)(clone(self.estimator), private[part], truth[part], seed)
            for part, seed in zip(parts, seeds, strict=True)
        )
        pool = Parallel(n_jobs=self.n_jobs, return_as="generator")
        models = list(self._watched(pool(work), "training teachers", count))
        aggregator = Aggregator(rule, epsilon=self.epsilon, delta=self.delta, queries=asked)
        polls = training.polls(models, public[:asked], truth.shape[1], rule.max_votes)
        answers = aggregator.answers(polls)
        self.answers_ = tuple(self._watched(answers, "labelling public rows", asked))
        spent = aggregator.spent()
        self.epsilon_, self.delta_, self.bound_ = spent.epsilon, spent.delta, spent.bound
        self.n_labels_ = truth.shape[1]
        self._teach(public)
        return self

    def plan(self, labels: int, public_rows: int) -> PatePlan:
        """What the budget buys on so many labels and public rows. Looks at no data."""
        return plan_answers(
            labels,
            parameters.whole(self.teachers, "teachers"),
            queries=min(public_rows, MOST) if self.queries is None else self.queries,
            epsilon=self.epsilon,
            delta=self.delta,
            expected_labels=self.expected_labels,
            adjacency=self.adjacency,
        )

    def _check(self) -> None:
        parameters.one_of(self.method, "method", ("auto", "shares", "stable", "pate", "pate-tau"))
        parameters.one_of(self.threshold, "threshold", ("f1", "rates"))
        cut_goes_with = {"pate-tau": True, "shares": self.max_votes is not None}
        if cut_goes_with.get(self.method, False) != (self.max_votes is not None):
            raise InvalidParameter(
                f"max_votes={self.max_votes} does not go with method={self.method!r}; "
                "give max_votes for 'pate-tau', or if you like for 'shares', and for no other"
            )
        if self.weight_limit is not None and self.method != "shares":
            raise InvalidParameter(
                f"weight_limit={self.weight_limit} does not go with method={self.method!r}; "
                "weights are for 'shares'"
            )
        if self.expected_labels is not None and self.method != "auto":
            raise InvalidParameter(
                f"expected_labels={self.expected_labels} is for method='auto'; leave it out"
            )

    def _asked(self, labels: int, teachers: int, available: int) -> int:
        if self.queries is not None:
            return parameters.whole(self.queries, "queries")
        method = "shares" if self.method == "auto" else self.method
        budget = (self.epsilon, self.delta, self.adjacency)
        return recommended_queries(method, labels, teachers, available, *budget, self.max_votes)

    def _rule(self, labels: int, teachers: int, queries: int) -> VoteRule:
        budget: dict[str, Any] = {
            "queries": queries,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
        }
        if self.method == "stable":
            return stable_labels(labels, teachers, **budget, selection=self.selection)
        if self.method in ("pate", "pate-tau"):
            return noisy_majority(labels, teachers, **budget, max_votes=self.max_votes)
        cut = self.max_votes
        if self.method == "auto":
            cut = recommended_cut(labels, teachers, **budget, expected_labels=self.expected_labels)
        return noisy_shares(
            labels, teachers, **budget, max_votes=cut, weight_limit=self.weight_limit
        )

    def _teach(self, public: Any) -> None:
        answered = [answer for answer in self.answers_ if answer.labels is not None]
        self.answered_ = len(answered)
        self.student_ = None
        if not answered:
            return
        rows = public[[answer.number - 1 for answer in answered]]
        if isinstance(self.rule_, NoisyShares):
            shares = np.array([answer.shares for answer in answered], dtype=np.float64)
            model = ShareRidge() if self.student is None else self.student
            student = SoftStudent(model, self.threshold)
            self.student_ = student.fit(rows, shares, self.rule_.share_deviation**2)
            return
        targets = np.zeros((len(answered), self.n_labels_), dtype=np.int64)
        for row, answer in enumerate(answered):
            targets[row, list(answer.labels or ())] = 1
        self.student_ = clone(self.estimator if self.student is None else self.student).fit(
            rows, targets
        )

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """The student's labels; none at all when not one query was answered."""
        features = _matrix(X)
        if self.student_ is None:
            return np.zeros((features.shape[0], self.n_labels_), dtype=np.int64)
        return np.asarray(self.student_.predict(features)).astype(np.int64)

    def predict_shares(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The shares of the teachers that the student expects; for soft methods only."""
        if not isinstance(self.student_, SoftStudent):
            raise InvalidParameter("only students of shares know shares; use method='auto'")
        return self.student_.shares(_matrix(X))

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The share of labels that the student gets right."""
        return float((self.predict(X) == (np.asarray(y) != 0)).mean())

    def report(self, X: Any, y: Any) -> dict[str, float]:  # noqa: N803
        """Accuracy and micro-averaged F1 of the student, and what it cost."""
        truth, found = np.asarray(y) != 0, self.predict(X) != 0
        hits = float((truth & found).sum())
        marked = float(truth.sum() + found.sum())
        return {
            "accuracy": float((truth == found).mean()),
            "micro_f1": 2 * hits / marked if marked else 1.0,
            "answered": float(self.answered_),
            "epsilon": self.epsilon_,
            "delta": self.delta_,
        }

    def _watched(self, steps: Iterable[T], what: str, total: int) -> Iterator[T]:
        """The steps, with a progress bar on a terminal; it counts steps and nothing else."""
        if not self.progress:
            yield from steps
            return
        from rich.console import Console
        from rich.progress import track

        bar = Console(stderr=True, quiet=not sys.stderr.isatty())
        yield from track(steps, what, total=total, console=bar, transient=True)


def _matrix(features: Any) -> Any:
    """Rows that can be picked by number: arrays and sparse matrices as they are."""
    if hasattr(features, "tocsr"):
        return features.tocsr()
    if hasattr(features, "to_numpy"):
        return features.to_numpy()
    return features if hasattr(features, "shape") else np.asarray(features)
