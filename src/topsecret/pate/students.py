"""Students that learn from noisy shares. Everything here is post-processing of private answers.

A share is the part of the teachers that votes for a label, with Gaussian noise of a *known*
variance. Cut to yes or no it would lose most of what was paid for.

- `ShareRidge` is the default: linear regression of each label's shares, with the ridge that makes
  the shares likeliest, given the noise (marginal likelihood; the residual variance is at least that
  of the noise). Its estimates are posterior means, so they stay true to scale where little is
  known.
- Any other regressor learns the shares as they are; a classifier learns every row twice, as a yes
  of weight share and a no of weight 1 − share.

**From shares to labels.** ``threshold="f1"`` takes the estimated shares for chances and chooses the
one threshold with the largest expected F1 on the public rows: F(t) = 2·Σ_{q>t} q/(Σ q + #{q > t}).
Where the answers say little, more labels are named, which is what F1 asks for. The estimates
are those of each row by the other rows: a fit with more features than rows knows its own rows too
well. Where the noise hides even how often a label occurs (``HIDDEN``), every label is named.
``threshold="rates"`` gives each label the threshold at which it is named as often as the teachers
named it.

>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 2))
>>> shares = (X > 0) + 0.3 * rng.normal(size=X.shape)
>>> student = SoftStudent(ShareRidge(), "f1").fit(X, shares, 0.3**2)
>>> bool((student.predict(X) == (X > 0)).mean() > 0.9)
True
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Threshold = Literal["f1", "rates"]

FOLDS = 5
HIDDEN = 1 / 5
"""The deviation of a label's mean share, by the noise alone, above which all labels are named. On
made sets of 4 to 120 labels, with rates from nearly equal to very unequal, this student has a mean
F1 of .30/.28/.26/.23/.25 at .16/.2/.25/.32/.4, and naming all one of .28/.28/.28/.24/.28."""
SIGNALS = np.geomspace(1e-4, 30, 24)
"""Of the targets' variance: how much of it the features may explain, per mean direction."""
RESIDUES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0])
"""Of the targets' variance: what is neither explained nor noise."""


class ShareRidge:
    """Ridge regression whose penalty is chosen, label by label, for a known variance of noise."""

    def fit(self, features: Any, shares: Floats, noise_variance: float = 0.0) -> ShareRidge:
        """Learn every label's share; ``noise_variance`` is that of each share."""
        rows = _dense(features)
        self.mean_ = rows.mean(axis=0)
        centred = rows - self.mean_
        level = shares.mean(axis=0)
        residue = shares - level
        left, values, right = np.linalg.svd(centred, full_matrices=False)
        kept = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
        left, values, right = left[:, kept], values[kept], right[kept]
        seen = left.T @ residue
        gains = _gains(values, seen, residue, max(noise_variance, 1e-12))
        self.coef_ = right.T @ (gains / np.maximum(values, 1e-300)[:, None] * seen)
        self.intercept_ = level
        error = residue - left @ (gains * seen)
        own = 1 / len(rows) + left**2 @ gains  # how much of an estimate is the row's own share
        self.left_out_ = shares - error / np.maximum(1 - own, 1e-6)
        return self

    def predict(self, features: Any) -> Floats:
        """The estimated shares."""
        return np.asarray((_dense(features) - self.mean_) @ self.coef_ + self.intercept_)


def _gains(values: Floats, seen: Floats, residue: Floats, noise: float) -> Floats:
    """How much of each direction is kept, for each label: a·λ/(a·λ + v) at the likeliest a and v.

    The shares are N(level, a·K + v·I), K the features' Gram matrix scaled to mean eigenvalue 1.
    """
    rows, labels = residue.shape
    if len(values) == 0:
        return np.zeros((0, labels))
    scaled = values**2 / np.mean(values**2)
    total = (residue**2).mean(axis=0)
    outside = (residue**2).sum(axis=0) - (seen**2).sum(axis=0)
    best = np.full(labels, -np.inf)
    gains = np.zeros((len(values), labels))
    spare = np.maximum(total - noise, 0.01 * noise)
    for residual in RESIDUES:
        v = noise + residual * spare
        for signal in SIGNALS:
            explained = scaled[:, None] * (signal * total)[None, :]
            spread = explained + v
            likelihood = -0.5 * (
                (seen**2 / spread + np.log(spread)).sum(axis=0)
                + np.maximum(outside, 0.0) / v
                + (rows - 1 - len(values)) * np.log(v)
            )
            better = likelihood > best
            best[better] = likelihood[better]
            gains[:, better] = (explained / spread)[:, better]
    return gains


class SoftStudent:
    """A model of shares with the threshold that turns them into labels."""

    def __init__(self, model: Any, threshold: Threshold) -> None:
        self.model = model
        self.threshold = threshold

    def fit(self, features: Any, shares: Floats, noise_variance: float) -> SoftStudent:
        """Learn the shares of these public rows."""
        self.fitted_ = _fitted(self.model, features, shares, noise_variance)
        if self.threshold == "f1" and noise_variance > HIDDEN**2 * len(shares):
            self.thresholds_ = np.full(shares.shape[1], -np.inf)
            return self
        if isinstance(self.model, ShareRidge):
            known = self.fitted_
            told = known.left_out_ if self.threshold == "f1" else known.predict(features)
        else:  # another model may have learnt its rows by heart, noise included
            told = _out_of_fold(self.model, features, shares, noise_variance)
        if self.threshold == "f1":
            self.thresholds_ = np.full(shares.shape[1], f1_threshold(told))
        else:
            self.thresholds_ = rate_thresholds(told, shares.mean(axis=0))
        return self

    def shares(self, features: Any) -> Floats:
        """The estimated shares."""
        return np.asarray(self.fitted_.predict(features), dtype=np.float64)

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
        told[here] = fitted.predict(features[here])
    return told


def _dense(features: Any) -> Floats:
    if hasattr(features, "toarray"):
        features = features.toarray()
    return np.asarray(features, dtype=np.float64)
