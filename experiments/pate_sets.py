"""E3c: students of noisy shares beside the paper's rules on eleven multi-label sets.

    OMP_NUM_THREADS=1 python -m experiments E3c

Ridge classifiers as teachers on disjoint parts of the training rows (about fifty rows each, 400
teachers at most), up to 500 other training rows as public queries, micro-averaged F1 of the student
on the test rows (on a fifth of the rows where a set has no split of its own). Under ``replace``,
delta = 1e-6. *soft* is ``method="auto"`` as it stands: its rule and its student were found on made
data. The hard rules teach a ridge classifier, as in E3b.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier

from experiments import applied
from experiments.pate import DELTA, answers, f1, student_score
from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import Progress, quiet
from topsecret.noise.bits import ReplayableBits
from topsecret.pate import Aggregator, NoisyShares, StableLabels, VoteRule, noisy_majority
from topsecret.pate import teachers as training
from topsecret.pate.calibration import noisy_shares, stable_labels
from topsecret.pate.plan import recommended_cut
from topsecret.pate.students import ShareRidge, SoftStudent

SETS = (
    "emotions",
    "scene",
    "yeast",
    "cal500",
    "medical",
    "enron",
    "corel5k",
    "bibtex",
    "delicious",
    "tmc2007-500",
    "imdb",
)
EPSILONS = (2, 4, 8)
SEEDS = 5
METHODS = ("StableTopK", "PATE", "PATE-τ, τ = 4", "soft", "soft, matched rates")
HEADS = ["set", "labels", "teachers", "queries", "method", "epsilon", "seed", "student F1"]
NAME, TITLE = "pate-sets", "E3c. Soft answers on multi-label sets"
PER_TEACHER = 50


@cache
def _scales(queries: int, epsilon: float) -> StableLabels:
    """The noise of StableTopK, which depends on neither labels nor teachers."""
    return stable_labels(3, 2, queries=queries, epsilon=epsilon, delta=DELTA)


@cache
def rule_of(method: str, labels: int, epsilon: float, teachers: int, queries: int) -> VoteRule:
    """Calibrated once: it depends on public numbers only."""
    budget: Any = {"queries": queries, "epsilon": epsilon, "delta": DELTA}
    if method == "StableTopK":
        noise = _scales(queries, epsilon)
        scales = (noise.selection_scale, noise.test_scale, noise.failure)
        return StableLabels(labels, teachers, *scales)
    if method == "PATE":
        return noisy_majority(labels, teachers, **budget)
    if method.startswith("PATE-τ"):
        return noisy_majority(labels, teachers, **budget, max_votes=min(4, labels))
    cut = recommended_cut(labels, teachers, **budget, adjacency="replace")
    return noisy_shares(labels, teachers, **budget, max_votes=cut)


def split(name: str, seed: int) -> tuple[Any, ...]:
    """Features, labels, and the rows for teachers, queries and tests."""
    features, labels, is_test = applied.multilabel(name)
    rng = np.random.default_rng(seed)
    if not is_test.any():
        is_test = rng.random(len(labels)) < 0.2
    order = rng.permutation(np.flatnonzero(~is_test))
    queries = min(500, len(order) // 4)
    private = order[queries:]
    teachers = min(400, max(5, len(private) // PER_TEACHER))
    return features, labels, order[:queries], private, np.flatnonzero(is_test)[:8000], teachers


def scores(name: str, seed: int, epsilons: tuple[int, ...] = EPSILONS) -> list[list[object]]:
    """One seed of one set: every method at every epsilon on the same teachers."""
    features, labels, queries, private, test, count = split(name, seed)
    models = [
        training.train(RidgeClassifier(alpha=3), features[part], labels[part].astype(np.int64))
        for part in np.array_split(private, count)
    ]
    public, truth = features[queries], (features[test], labels[test])
    width = labels.shape[1]
    rows: list[list[object]] = []
    facts = [name, width, count, len(queries)]
    polls: dict[int | None, Any] = {}
    for method in METHODS:
        for epsilon in epsilons:
            rule = rule_of(method, width, epsilon, count, len(queries))
            cut = rule.max_votes
            if cut not in polls:
                polls.clear()  # one copy of the votes at a time
                polls[cut] = list(training.polls(models, public, width, cut))
            if isinstance(rule, NoisyShares):
                threshold = "rates" if "rates" in method else "f1"
                score = soft_score(rule, polls[cut], public, truth, epsilon, seed, threshold)
            else:
                sets, answered = answers(rule, polls[cut], epsilon, seed)
                score = student_score(public, sets, answered, truth)[0]
            rows.append([*facts, method, epsilon, seed, score])
    return rows


def soft_score(
    rule: NoisyShares,
    polls: list[Any],
    public: NDArray[np.float32],
    truth: tuple[Any, Any],
    epsilon: float,
    seed: int,
    threshold: Any,
) -> float:
    """F1 of the student of shares."""
    bits = ReplayableBits(f"{seed} {epsilon} {rule}".encode())
    asked = Aggregator(rule, epsilon=epsilon, delta=DELTA, queries=len(polls), bits=bits)
    shares = np.array([answer.shares for answer in asked.answers(polls)])
    student = SoftStudent(ShareRidge(), threshold).fit(public, shares, rule.share_deviation**2)
    return f1(truth[1], student.predict(truth[0]) != 0)


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """Run all sets and write the table, the picture and the page."""
    names = ("emotions",) if smoke else SETS
    epsilons = (8,) if smoke else EPSILONS
    seeds = repetitions or (1 if smoke else SEEDS)
    rows: list[list[Any]] = []
    for done, name in enumerate(names):
        progress(f"E3c {name}", done, len(names))
        for number in range(seeds):
            rows += scores(name, seed - 1 + number, epsilons)
    return report(rows, epsilons)


def report(rows: list[list[Any]], epsilons: tuple[int, ...] = EPSILONS) -> str:
    """Word and draw the rows."""
    write_table(NAME, HEADS, [[*row[:-1], f"{float(row[-1]):.4f}"] for row in rows])
    cells: dict[tuple[str, str, int], list[float]] = {}
    facts: dict[str, str] = {}
    for row in rows:
        cells.setdefault((row[0], row[4], int(row[5])), []).append(float(row[-1]))
        facts[row[0]] = f"{row[0]} ({row[1]} labels, {row[2]} teachers, {row[3]} queries)"
    middle = {key: mean(values) for key, values in cells.items()}
    hard = METHODS[:3]
    lines, behind = [], []
    for name, shown in facts.items():
        for method in METHODS:
            each = [cells[name, method, epsilon] for epsilon in epsilons]
            lines.append([shown, method, len(each[0]), *map(_cell, each)])
        for epsilon in epsilons:
            best = max(middle[name, method, epsilon] for method in hard)
            if middle[name, "soft", epsilon] < best - 0.01:
                lost = best - middle[name, "soft", epsilon]
                behind.append(f"{name} at ε = {epsilon} (by {lost:.3f})")
    total = len(facts) * len(epsilons)
    means = {
        method: "/".join(f"{mean(middle[n, method, e] for n in facts):.3f}" for e in epsilons)
        for method in METHODS
    }
    where = f": {'; '.join(behind)}" if behind else ""
    verdict = (
        f"mean F1 over {len(facts)} sets at ε = {'/'.join(map(str, epsilons))}: soft "
        f"{means['soft']}, StableTopK {means['StableTopK']}, PATE {means['PATE']}, PATE-τ "
        f"{means['PATE-τ, τ = 4']}. Soft is more than .01 behind the best of the three in "
        f"{len(behind)} of {total} cells{where}."
    )
    draw(NAME, lambda figure: _paint(figure, middle, list(facts), epsilons), 11, 7)
    heads = ["set", "method", "seeds", *(f"ε = {epsilon}" for epsilon in epsilons)]
    missing = [name for name in SETS if name not in facts]
    more = [f"Not in this run: {', '.join(missing)}."] if missing else []
    return write_page(NAME, TITLE, verdict, TEXT, markdown(heads, lines), *more)


def _cell(values: list[float]) -> str:
    return f"{mean(values):.3f} ± {stdev(values) if len(values) > 1 else 0:.3f}"


def _paint(figure: Any, middle: dict[Any, float], names: list[str], epsilons: Any) -> None:
    columns = min(4, len(names))
    panels = figure.subplots(math.ceil(len(names) / columns), columns, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        for method in METHODS:
            panel.plot(epsilons, [middle[name, method, e] for e in epsilons], "o-", label=method)
        panel.set_title(name, fontsize=9)
        panel.set_xscale("log", base=2)
        panel.set_xticks(epsilons, [f"{epsilon}" for epsilon in epsilons])
        panel.set_xlabel("ε")
        panel.grid(alpha=0.3)
    for panel in panels[len(names) :]:
        panel.axis("off")
    panels[0].set_ylabel("F1 of the student")
    lines = panels[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside lower center", ncols=len(METHODS))


TEXT = """
Micro-averaged F1 of the student on the test rows, mean ± standard deviation of the seeds, under
`replace`, δ = 10⁻⁶. The soft student is `PateClassifier`'s default; *matched rates* is
`threshold="rates"`. An F1 of 0.000 is that of a student which names no right label: on ten
of the sets StableTopK answers no query, or hardly one.

On tmc2007-500 teachers, queries and rules are those of [E3b](pate.md), and so are the numbers of
StableTopK, PATE and PATE-τ, but for rounding.

Six of the eleven sets are small: with 5 to 22 teachers no private answer says much at these ε, and
what is left is how a student behaves that knows how little it knows.

An earlier student named every
label where the noise exceeded a fixed limit. It fell behind PATE on scene at ε = 4, just below that
limit, by .034 and in twenty seeds by .039 (.263 ± .012 against .302 ± .005, standard errors).

The present one has no limit. It draws labels' rates together by as much as is noise, which names
every label where nothing else is known. It was made and tuned on made-up sets, some of them of the
shapes of these (5 or 18 teachers, 6 labels, one label a row), and fixed before it met these. It was
known that the earlier one was behind on scene, and why. `experiments/tune_students.py` shows the
last choice, by how much the threshold is lowered; the comparison of priors is not kept.

On the 120 made-up sets of that choice, at the three ε, it has a mean F1 of .331, PATE .243, PATE-τ
.240 and naming every label .229; it is more than .01 behind a hard rule in 46 of 360 cells. With
twenty seeds it has .336 ± .010 on scene at ε = 4.

**What it costs.** On emotions and cal500 at ε = 4 and 8 naming every label is still best (.495 and
.261), and the present student, who believes a little of what it sees, stays below that: by .06 on
emotions at ε = 8, by .03 or less otherwise. yeast at ε = 4 and 8 and bibtex lose up to .02 against
the student with the limit. enron, scene, delicious and imdb gain up to .10.
"""
