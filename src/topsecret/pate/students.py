"""Students that learn from noisy shares. Everything here is post-processing of private answers.

A share is the part of the teachers that votes for a label, with Gaussian noise of a *known*
variance. Cut to yes or no it would lose most of what was paid for.

- `ShareRidge` is the default: how often each label occurs, and a ridge regression of what the
  features add. Both are posterior means given the noise, so they stay true to scale where little is
  known: labels that the noise makes look unequal are drawn together, and what the features add
  tends to nothing.
- Any other regressor learns the shares as they are; a classifier learns every row twice, as a yes
  of weight share and a no of weight 1 − share.

**From shares to labels.** ``threshold="f1"`` takes the estimated shares for chances and chooses the
one threshold with the largest expected F1 on the public rows: F(t) = 2·Σ_{q>t} q/(Σ q + #{q > t}),
and a little less where teachers seem to disagree (``LOWER``). Where the answers say little, all
estimates are alike and every label is named, which is what F1 asks for.

The estimates are those of each row by the other rows: a fit with more features than rows knows its
own rows too well. Models that are not told of the noise cannot know that they know nothing; for
them every label is named where the noise hides even how often a label occurs (``HIDDEN``).
``threshold="rates"`` gives each label the threshold at which it is named as often as the teachers
named it.

The priors and ``LOWER`` were found on made sets; ``experiments/tune_students.py`` shows the latter.

>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 2))
>>> shares = (X > 0) + 0.3 * rng.normal(size=X.shape)
>>> student = SoftStudent(ShareRidge(), "f1").fit(X, shares, 0.3**2)
>>> bool((student.predict(X) == (X > 0)).mean() > 0.9)
True
"""

from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Threshold = Literal["f1", "rates"]

FOLDS = 5
HIDDEN = 1 / 5
"""The deviation of a label's mean share, by the noise alone, above which all labels are named by
models that know of no noise."""
LOWER = 0.8
"""Of the threshold, where teachers never agree: who is unsure votes for a label less often than it
is there. Where they always agree, 1; between, in proportion to how much the shares vary."""
EXPLAINED = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.75, 0.95])
"""Values that are tried for how much the features explain of the variance that is not noise."""
VARIED = np.array([0.03, 0.1, 0.25, 0.5, 1.0])
"""Values that are tried for the variance of a label's shares without noise, over p(1 − p)."""
RATES = (np.arange(400) + 0.5) ** 2 / 400**2
"""Where the law of a rate is kept: finer near 0."""
MEAN_RATES = np.geomspace(0.02, 0.5, 12)
INEQUALITIES = np.array([0.05, 0.2, 0.4, 0.7, 1.0, 1.4])
"""Values that are tried for the standard deviation of the logarithms of rates."""


class ShareRidge:
    """Rates, and a ridge regression of what is not noise, for a known variance of noise."""

    def fit(self, features: Any, shares: Floats, noise_variance: float = 0.0) -> ShareRidge:
        """Learn every label's share; ``noise_variance`` is that of each share."""
        rows = _dense(features)
        self.mean_ = rows.mean(axis=0)
        level = shares.mean(axis=0)
        residue = shares - level
        left, values, right = np.linalg.svd(rows - self.mean_, full_matrices=False)
        kept = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
        left, values, right = left[:, kept], values[kept], right[kept]
        seen = left.T @ residue
        noise = max(noise_variance, 1e-12)
        self.intercept_ = likely_rates(level, math.sqrt(noise / len(shares)))
        gains, self.agreement_ = _gains(values, seen, residue, noise, self.intercept_)
        self.coef_ = right.T @ (gains / np.maximum(values, 1e-300)[:, None] * seen)
        error = residue - left @ (gains * seen)
        own = left**2 @ gains  # how much of an estimate is the row's own share
        self.left_out_ = self.intercept_ + residue - error / np.maximum(1 - own, 1e-6)
        return self

    def predict(self, features: Any) -> Floats:
        """The estimated shares."""
        return np.asarray((_dense(features) - self.mean_) @ self.coef_ + self.intercept_)


def likely_rates(told: Floats, deviation: float) -> Floats:
    """How often each label occurs: the posterior mean given noisy rates of this standard deviation.

    Rates are lognormal, with a mean and an inequality that all labels have in common and that are
    averaged over by how well they explain what was told.

    >>> likely_rates(np.array([0.1, 0.4]), 0.01).round(1).tolist()
    [0.1, 0.4]
    >>> bool(np.ptp(likely_rates(np.array([-0.3, 0.1, 0.4]), 1.0)) < 0.05)
    True
    """
    deviation = max(deviation, 1 / len(RATES))  # what the grid can resolve
    far = np.abs(told[:, None] - RATES)
    likelihood = np.exp((far.min(axis=1, keepdims=True) ** 2 - far**2) / (2 * deviation**2))
    evidence = np.maximum(likelihood @ _PRIORS.T, 1e-300)
    means = ((likelihood * RATES) @ _PRIORS.T) / evidence
    return np.asarray(means @ _weights(np.log(evidence).sum(axis=0)))


def _priors() -> Floats:
    """The law of a rate on the grid for each mean and inequality."""
    mean, inequality = (x.reshape(-1, 1) for x in np.meshgrid(MEAN_RATES, INEQUALITIES))
    from_mean = (np.log(RATES / mean) + inequality**2 / 2) / inequality
    # The cells of the grid are as wide as the root of a rate, so that 1/rate leaves 1/√rate.
    laws = np.exp(-(from_mean**2) / 2) / np.sqrt(RATES)
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


_PRIORS = _priors()


def _weights(logs: Floats) -> Floats:
    """exp(logs), scaled to the sum 1."""
    likely = np.exp(logs - logs.max())
    return np.asarray(likely / likely.sum())


def _gains(
    values: Floats, seen: Floats, residue: Floats, noise: float, rates: Floats
) -> tuple[Floats, float]:
    """How much of each direction is kept, for each label: a·λ/(a·λ + v), averaged over a and v.

    The shares are N(level, a·K + v·I), K the features' Gram matrix scaled to a mean diagonal of 1,
    a = R²·t·p(1 − p), v = noise + (1 − R²)·t·p(1 − p): a share lies in [0, 1] and varies by no more
    than p(1 − p), p its mean. R² and t are the same for all labels; each pair counts by how well it
    explains the shares. The second value is the mean of t: 1 if all teachers always vote alike.
    """
    if len(values) == 0:
        return np.zeros((0, len(rates))), 1.0
    rows = len(residue)
    scaled = (rows * values**2 / np.sum(values**2))[:, None]
    outside = np.maximum((residue**2).sum(axis=0) - (seen**2).sum(axis=0), 0.0)
    most = np.maximum(rates * (1 - rates), 1e-6)

    def parts(pair: tuple[float, float]) -> tuple[Floats, Floats]:
        explained, varied = pair
        return scaled * (explained * varied * most), noise + (1 - explained) * varied * most

    def likelihood(signal: Floats, rest: Floats) -> float:
        spread = signal + rest
        fit = (seen**2 / spread + np.log(spread)).sum(axis=0)
        return float(-0.5 * (fit + outside / rest + (rows - 1 - len(values)) * np.log(rest)).sum())

    pairs = list(product(EXPLAINED.tolist(), VARIED.tolist()))
    weights = _weights(np.array([likelihood(*parts(pair)) for pair in pairs]))
    gains = np.zeros(seen.shape)
    for pair, weight in zip(pairs, weights, strict=True):
        if weight > 1e-6:
            signal, rest = parts(pair)
            gains += weight * signal / (signal + rest)
    return gains, float(weights @ [varied for _, varied in pairs])


class SoftStudent:
    """A model of shares with the threshold that turns them into labels."""

    def __init__(self, model: Any, threshold: Threshold) -> None:
        self.model = model
        self.threshold = threshold

    def fit(self, features: Any, shares: Floats, noise_variance: float) -> SoftStudent:
        """Learn the shares of these public rows."""
        known = self.fitted_ = _fitted(self.model, features, shares, noise_variance)
        if isinstance(self.model, ShareRidge):
            told = known.left_out_ if self.threshold == "f1" else known.predict(features)
        elif self.threshold == "f1" and noise_variance > HIDDEN**2 * len(shares):
            self.thresholds_ = np.full(shares.shape[1], -np.inf)
            return self
        else:  # another model may have learnt its rows by heart, noise included
            told = _out_of_fold(self.model, features, shares, noise_variance)
        if self.threshold == "f1":
            agreement = known.agreement_ if isinstance(known, ShareRidge) else 1.0
            lowered = (LOWER + (1 - LOWER) * agreement) * f1_threshold(told)
            self.thresholds_ = np.full(shares.shape[1], lowered)
        else:
            self.thresholds_ = rate_thresholds(told, shares.mean(axis=0))
        return self

    def shares(self, features: Any) -> Floats:
        """The estimated shares."""
        return _estimates(self.fitted_, features, len(self.thresholds_))

    def predict(self, features: Any) -> NDArray[np.int64]:
        """1 where a label is named."""
        return (self.shares(features) > self.thresholds_).astype(np.int64)


def f1_threshold(shares: Floats) -> float:
    """The threshold of the largest expected F1 if each share is the chance of its label.

    >>> f1_threshold(np.array([[0.9, 0.8, 0.1]])) < 0.8
    True
    """
    ranked = np.sort(np.clip(shares, 0.0, 1.0).ravel())[::-1]
    if ranked.size == 0 or ranked[0] <= 0:
        return 0.5
    hits = np.cumsum(ranked)
    expected = 2 * hits / (hits[-1] + np.arange(1, len(ranked) + 1))
    return float(np.nextafter(ranked[int(np.argmax(expected))], -np.inf))


def rate_thresholds(shares: Floats, rates: Floats) -> Floats:
    """For each label the threshold that names it as often as ``rates`` says.

    >>> rate_thresholds(np.array([[0.1], [0.2], [0.3], [0.4]]), np.array([0.5])).round(2).tolist()
    [0.25]
    """
    kept = np.clip(rates, 0.0, 1.0)
    found = [
        np.quantile(column, 1 - rate) if rate > 0 else np.inf
        for column, rate in zip(shares.T, kept, strict=True)
    ]
    return np.array(found, dtype=np.float64)


class _Weighted:
    """One classifier per label that learnt each row as a weighted yes and a weighted no."""

    def __init__(self, models: list[Any]) -> None:
        self._models = models

    def predict(self, features: Any) -> Floats:
        columns = []
        for model in self._models:
            if hasattr(model, "predict_proba"):
                columns.append(np.asarray(model.predict_proba(features))[:, -1])
            else:
                columns.append(0.5 * (1 + np.tanh(np.asarray(model.decision_function(features)))))
        return np.stack(columns, axis=1)


def _fitted(model: Any, features: Any, shares: Floats, noise_variance: float) -> Any:
    if isinstance(model, ShareRidge):
        return ShareRidge().fit(features, shares, noise_variance)
    from sklearn.base import clone, is_classifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about made targets, which nobody needs to see
        if not is_classifier(model):
            return clone(model).fit(features, shares)
        number = len(shares)
        twice = np.r_[np.arange(number), np.arange(number)]
        said = np.r_[np.ones(number, dtype=np.int64), np.zeros(number, dtype=np.int64)]
        models = []
        for column in np.clip(shares, 0.02, 0.98).T:
            weights = np.r_[column, 1 - column]
            models.append(clone(model).fit(features[twice], said, sample_weight=weights))
        return _Weighted(models)


def _out_of_fold(model: Any, features: Any, shares: Floats, noise_variance: float) -> Floats:
    """Estimates of each row by models that have not seen it."""
    number = len(shares)
    folds = np.arange(number) % min(FOLDS, number)
    told = np.array(shares, dtype=np.float64)
    if number < 2 * FOLDS:
        return told
    for fold in range(FOLDS):
        here = np.flatnonzero(folds == fold)
        there = np.flatnonzero(folds != fold)
        fitted = _fitted(model, features[there], shares[there], noise_variance)
        told[here] = _estimates(fitted, features[here], shares.shape[1])
    return told


def _estimates(fitted: Any, features: Any, labels: int) -> Floats:
    """One column for each label: of one label alone most regressors return a single line."""
    return np.asarray(fitted.predict(features), dtype=np.float64).reshape(-1, labels)


def _dense(features: Any) -> Floats:
    if hasattr(features, "toarray"):
        features = features.toarray()
    return np.asarray(features, dtype=np.float64)
