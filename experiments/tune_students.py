"""How the soft student's constants were chosen: mean F1 on made multi-label sets.

    OMP_NUM_THREADS=1 python -m experiments.tune_students     # a minute or two, prints the table

No real dataset is read. A set has 4 to 50 labels, 5 to 200 teachers of 50 rows, 80 to 500 public
rows and 10 to 200 features: white, correlated as image descriptors are, or rare words. Labels have
mean rates of .04 to .3, from nearly equal to very unequal, are told by the features to 30, 60 or
90%, and in a third of the sets stand nearly alone, one to a row. Teachers are ridge classifiers;
``--rows 400`` makes them good ones.
Noise comes from NumPy: this is a comparison of constants, not a release.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier

from experiments.pate import DELTA, f1, student_score
from topsecret.pate import students
from topsecret.pate import teachers as training
from topsecret.pate.calibration import noisy_majority, noisy_shares
from topsecret.pate.plan import recommended_cut

EPSILONS = (2, 4, 8)
LOWER = (0.6, 0.8, 1.0)


@dataclass
class Made:
    """One made set: public rows, the teachers' votes, rows to test on."""

    public: NDArray[np.float32]
    whole: NDArray[np.int64]
    cut: NDArray[np.int64]
    teachers: int
    test: tuple[NDArray[np.float32], NDArray[np.bool_]]


def made(seed: int, per_teacher: int = 50) -> Made:
    """A set of random shape."""
    rng = np.random.default_rng(seed)
    labels = int(rng.choice([4, 6, 8, 14, 25, 50]))
    teachers = int(rng.choice([5, 10, 18, 30, 70, 200]))
    queries, width = int(rng.choice([80, 150, 300, 500])), int(rng.choice([10, 50, 200]))
    kind = str(rng.choice(["white", "correlated", "words"]))
    rate = float(rng.choice([0.04, 0.1, 0.2, 0.3]))
    inequality = float(rng.choice([0.1, 0.5, 1.0, 1.6]))
    told, alone = float(rng.choice([0.3, 0.6, 0.9])), bool(rng.random() < 0.33)
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0]
    decay = np.arange(1, width + 1) ** -0.7 * np.sqrt(width) / 2
    often = np.clip(0.4 / np.arange(1, width + 1) ** 0.6, 0.01, 0.5)

    def features(rows: int) -> NDArray[np.float32]:
        if kind == "words":
            return (rng.random((rows, width)) < often).astype(np.float32)
        drawn = rng.normal(size=(rows, width))
        return np.asarray(drawn if kind == "white" else (drawn * decay) @ turn, dtype=np.float32)

    few = rng.random((width, labels)) < max(0.1, 5 / width)
    weights = rng.normal(size=(width, labels)) * (few + 1e-3)
    relative = np.exp(inequality * rng.normal(size=labels))
    relative /= relative.mean()
    start = [NormalDist().inv_cdf(x) for x in np.clip(rate * relative, 0.003, 0.8)]
    sample = features(4000) @ weights
    centre, scale = sample.mean(axis=0), sample.std(axis=0) + 1e-9

    def rows(number: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        drawn = features(number)
        score = np.sqrt(told) * (drawn @ weights - centre) / scale
        score += np.sqrt(1 - told) * rng.normal(size=score.shape)
        if not alone:
            return drawn, score + start > 0
        ranks = np.argsort(np.argsort(-(score + 0.8 * np.log(relative)), axis=1), axis=1)
        return drawn, ranks < 1 + (rng.random((number, 1)) < 0.07)

    private, public, test = rows(per_teacher * teachers), rows(queries)[0], rows(1000)
    models = [
        training.train(RidgeClassifier(alpha=3), private[0][part], private[1][part].astype(int))
        for part in np.array_split(np.arange(per_teacher * teachers), teachers)
    ]
    counts = [
        np.array([ballots.sum(axis=0) for ballots in training.polls(models, public, labels, cut)])
        for cut in (None, min(4, labels))
    ]
    return Made(public, counts[0], counts[1], teachers, test)


def scores(each: Made, epsilon: int, seed: int) -> Iterator[tuple[str, float]]:
    """F1 of the soft student, of the hard rules, and of naming every label."""
    rng = np.random.default_rng([seed, epsilon])
    queries, labels = each.whole.shape
    budget: Any = {"queries": queries, "epsilon": epsilon, "delta": DELTA}
    cut = recommended_cut(labels, each.teachers, **budget, adjacency="replace")
    rule = noisy_shares(labels, each.teachers, **budget, max_votes=cut)
    votes, deviation = each.whole if cut is None else each.cut, rule.share_deviation
    shares = votes / each.teachers + deviation * rng.normal(size=votes.shape)
    student = students.SoftStudent(students.ShareRidge(), "f1")
    student.fit(each.public, shares, deviation**2)
    told, truth = student.shares(each.test[0]), each.test[1]
    agreement = student.fitted_.agreement_
    used = students.LOWER + (1 - students.LOWER) * agreement
    for lower in LOWER:
        factor = (lower + (1 - lower) * agreement) / used
        yield f"soft, LOWER = {lower:g}", f1(truth, told > factor * student.thresholds_)
    yield "every label", f1(truth, np.ones_like(truth))
    for name, counted, limit in (("PATE", each.whole, None), ("PATE-τ", each.cut, min(4, labels))):
        sigma = float(noisy_majority(labels, each.teachers, **budget, max_votes=limit).sigma)
        sets = counted + sigma * rng.normal(size=counted.shape) > each.teachers / 2
        yield name, student_score(each.public, sets, np.ones(queries, np.bool_), each.test)[0]


def main() -> None:
    """Print the mean F1 of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=120)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int, default=50, help="of each teacher")
    asked = parser.parse_args()
    found: dict[str, list[float]] = {}
    for seed in range(asked.first, asked.first + asked.sets):
        each = made(seed, asked.rows)
        for epsilon in EPSILONS:
            for name, score in scores(each, epsilon, seed):
                found.setdefault(name, []).append(score)
    hard = np.maximum(found["PATE"], found["PATE-τ"])
    for name, values in found.items():
        lost = int((np.array(values) < hard - 0.01).sum())
        line = f"{name:<20} {np.mean(values):.3f}  behind PATE or PATE-τ in {lost}/{len(hard)}"
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
