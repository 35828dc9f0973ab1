"""E3b: multi-label PATE, a student's quality against epsilon for StableTopK, PATE and PATE-τ.

    OMP_NUM_THREADS=1 python -m experiments E3b     # about five minutes, writes docs/results/pate*

*Real*: tmc2007-500 (22 labels). 400 teachers (ridge classifiers) train on disjoint parts of the
training rows, 500 other training rows are the public queries, the student is scored on the test
rows. *Simulated votes*: CelebA's true attributes (40 labels, 9 per image), no images at hand, so
each of 400 teachers errs on a label independently with a probability that is itself drawn from
Beta(1, 9) for each image and label, 10% on average; the released labels are scored. Under
``replace`` unless the name says add-remove (the paper's relation). Noise is calibrated to each
epsilon at delta = 1e-6. The grid and the alignment look at the true labels: a comparison, not a
release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier

from experiments import applied
from experiments.report import write_table
from experiments.trials import Progress, quiet
from topsecret.noise.bits import ReplayableBits
from topsecret.pate import Aggregator, VoteRule, noisy_majority, stable_labels
from topsecret.pate import teachers as training
from topsecret.pate.ballots import Ballots

DELTA, SEEDS = 1e-6, 5
EPSILONS = (2, 4, 6, 8, 11, 16, 23, 32, 64)


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    teachers: int = 400
    queries: int = 500
    epsilons: tuple[int, ...] = EPSILONS
    rows: int | None = None
    """How many rows the teachers learn from, and how many the student is scored on; None: all."""


SMALL = Size(50, 20, (16, 64), rows=1000)


@dataclass(frozen=True)
class Method:
    """A rule for each budget; whether ballots are cut by the teachers' own certainty."""

    name: str
    max_votes: int | None
    build: Callable[[int, float, Size], VoteRule]


def _stable(
    selection: Literal["gumbel", "gaussian"],
    adjacency: Literal["add-remove", "replace"] = "replace",
) -> Callable[[int, float, Size], VoteRule]:
    return lambda labels, epsilon, size: stable_labels(
        labels,
        size.teachers,
        queries=size.queries,
        epsilon=epsilon,
        delta=DELTA,
        selection=selection,
        adjacency=adjacency,
    )


def _majority(
    max_votes: int | None, adjacency: Literal["add-remove", "replace"] = "replace"
) -> Callable[[int, float, Size], VoteRule]:
    return lambda labels, epsilon, size: noisy_majority(
        labels,
        size.teachers,
        queries=size.queries,
        epsilon=epsilon,
        delta=DELTA,
        max_votes=max_votes,
        adjacency=adjacency,
    )


METHODS = (
    Method("StableTopK", None, _stable("gumbel")),
    Method("StableTopK, Gaussian selection", None, _stable("gaussian")),
    Method("PATE", None, _majority(None)),
    Method("PATE-τ, τ = 2", 2, _majority(2)),
    Method("PATE-τ, τ = 4", 4, _majority(4)),
    Method("PATE-τ, τ = 8", 8, _majority(8)),
    Method("StableTopK, add-remove", None, _stable("gumbel", "add-remove")),
    Method("PATE-τ, τ = 4, add-remove", 4, _majority(4, "add-remove")),
    Method("PATE-τ, τ = 8, add-remove", 8, _majority(8, "add-remove")),
)


@cache
def rule_of(method: Method, labels: int, epsilon: float, size: Size) -> VoteRule:
    """Calibrated once: it depends on public numbers only."""
    return method.build(labels, epsilon, size)


def answers(
    rule: VoteRule, polls: list[Ballots], epsilon: float, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The released sets and which queries were answered."""
    aggregator = Aggregator(
        rule,
        epsilon=epsilon,
        delta=DELTA,
        queries=len(polls),
        bits=ReplayableBits(f"{seed} {epsilon} {rule}".encode()),
    )
    sets = np.zeros((len(polls), rule.labels), dtype=np.bool_)
    answered = np.zeros(len(polls), dtype=np.bool_)
    for answer in aggregator.answers(polls):
        answered[answer.number - 1] = answer.labels is not None
        sets[answer.number - 1, list(answer.labels or ())] = True
    return sets, answered


def f1(truth: NDArray[np.bool_], found: NDArray[np.bool_]) -> float:
    """Micro-averaged over all labels."""
    return float(2 * (truth & found).sum() / max(1, truth.sum() + found.sum()))


def student_score(
    features: NDArray[np.float32],
    sets: NDArray[np.bool_],
    answered: NDArray[np.bool_],
    test: tuple[NDArray[np.float32], NDArray[np.bool_]],
) -> tuple[float, float]:
    """F1 and accuracy of a student that learns the answered queries."""
    if not answered.any():
        found = np.zeros_like(test[1])
    else:
        student = RidgeClassifier(alpha=10)
        student.fit(features[answered], sets[answered].astype(np.int64))
        found = np.asarray(student.predict(test[0])) != 0
    return f1(test[1], found), float((found == test[1]).mean())


def real(seed: int, size: Size) -> Iterator[list[object]]:
    """One seed of the real run: every method at every epsilon on the same teachers."""
    features, labels, is_test = applied.multilabel("tmc2007-500")
    order = np.random.default_rng(seed).permutation(np.flatnonzero(~is_test))
    queries, private = order[: size.queries], order[size.queries :][: size.rows]
    test = (features[is_test][: size.rows], labels[is_test][: size.rows])
    models = [
        training.train(RidgeClassifier(alpha=3), features[part], labels[part].astype(np.int64))
        for part in np.array_split(private, size.teachers)
    ]
    public = features[queries]
    everyone = np.ones(size.queries, dtype=np.bool_)
    truth = labels[queries]
    yield ["real", "the true labels", "", seed, *student_score(public, truth, everyone, test), 1, 1]
    for method in METHODS:
        polls = list(training.polls(models, public, labels.shape[1], method.max_votes))
        if method.name in ("StableTopK", "PATE", "PATE-τ, τ = 4"):
            sets = without_noise(polls, method)
            scores = student_score(public, sets, everyone, test)
            yield ["real", f"{method.name}, no noise", "", seed, *scores, 1, f1(truth, sets)]
        for epsilon in size.epsilons:
            rule = rule_of(method, labels.shape[1], epsilon, size)
            sets, answered = answers(rule, polls, epsilon, seed)
            scores = student_score(public, sets, answered, test)
            quality = f1(truth[answered], sets[answered]) if answered.any() else 0.0
            yield ["real", method.name, epsilon, seed, *scores, float(answered.mean()), quality]


def without_noise(polls: list[Ballots], method: Method) -> NDArray[np.bool_]:
    """What the method would say without privacy."""
    counts = np.stack([poll.sum(axis=0) for poll in polls])
    if not method.name.startswith("StableTopK"):
        return 2 * counts > len(polls[0])
    order = np.argsort(-counts, axis=1, kind="stable")
    ranked = np.take_along_axis(counts, order, axis=1)
    place = np.argmax(ranked[:, :-1] - ranked[:, 1:], axis=1)
    sets = np.zeros(counts.shape, dtype=np.bool_)
    np.put_along_axis(sets, order, np.arange(counts.shape[1]) <= place[:, None], axis=1)
    return sets


def simulated(seed: int, size: Size) -> Iterator[list[object]]:
    """One seed of simulated votes on CelebA's attributes."""
    rng = np.random.default_rng(seed)
    attributes = applied.celeba()
    truth = attributes[rng.choice(len(attributes), size.queries, replace=False)]
    errors = rng.beta(1, 9, size=truth.shape)
    polls = [
        row[None, :] ^ (rng.random((size.teachers, truth.shape[1])) < chance[None, :])
        for row, chance in zip(truth, errors, strict=True)
    ]
    for method in METHODS:
        for epsilon in size.epsilons:
            sets, answered = answers(
                rule_of(method, truth.shape[1], epsilon, size), polls, epsilon, seed
            )
            kept = answered if answered.any() else ~answered
            accuracy = float((sets[kept] == truth[kept]).mean())
            quality = f1(truth[kept], sets[kept])
            share = float(answered.mean())
            yield ["simulated", method.name, epsilon, seed, "", accuracy, share, quality]


NAME = "pate"
HEADS = ["votes", "method", "epsilon", "seed", "student F1", "accuracy", "answered", "label F1"]


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """Run all seeds, write the rows, and let ``pate_report`` draw and word them."""
    from experiments.pate_report import write

    size = SMALL if smoke else Size()
    seeds = repetitions or (2 if smoke else SEEDS)
    rows: list[list[object]] = []
    for number in range(seeds):
        progress("E3", number, seeds)
        each = seed - 1 + number
        rows += [*real(each, size), *simulated(each, size)]
    shown = [[f"{cell:.5g}" if isinstance(cell, float) else str(cell) for cell in r] for r in rows]
    write_table(NAME, HEADS, shown)
    return write([dict(zip(HEADS, row, strict=True)) for row in shown])
