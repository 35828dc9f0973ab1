"""E7b: the same question in other libraries, on every dataset of which it is known who has what.

    python -m experiments E7b

The sets are all of ``data.PERSONS`` with at most 60,000 pairs of a person and an item, and E7's
Jakarta: the list was made for other experiments, and the limit, lowered three times, is for time.
Each library that needs a cap gets three, and the best is taken afterwards.
"""

from __future__ import annotations

import csv
import io
import random
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from experiments import data
from experiments.e7_peers import CAPS, DELTA, EPSILON, OURS, PEERS, SCRIPTS, SIZES
from experiments.report import draw, markdown, write_page, write_table
from experiments.throwaway import Unavailable, ask, environment
from experiments.trials import Progress, quiet
from topsecret.planning import plan
from topsecret.sources.demo_data import write_checkins

NAME = "e7b-peer-sets"
TITLE = "E7b. Other libraries on many datasets"
COUNTED = "topsecret with counts"
DEMO = "Demo (made up)"
"""What ``topsecret demo`` writes: made to show what a cap does, so it counts for nobody."""
RIVALS = {library: PEERS[library] for library in ("OpenDP", "PipelineDP", "SmartNoise SQL")}
"""Tumult Analytics is left to E7: it starts Spark for every question."""
MADE_UP = "The demo was made up to show what such a limit does, so the verdict leaves it out."
LIBRARIES = (OURS, COUNTED, *RIVALS)
LARGEST = 60_000


@dataclass(frozen=True)
class Run:
    """What one library did on one set with one cap."""

    data: str
    library: str
    cap: int | None
    recalls: tuple[float, ...]
    """The mean over the runs, for each of ``SIZES``."""
    runs: int


@dataclass(frozen=True)
class Shape:
    """Public facts about one set."""

    persons: int
    items: int
    pairs: int
    typical: float
    """Items of the median person."""


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """Five runs of each; the noise is each library's own, so the seed only shuffles the rows."""
    runs = repetitions or (1 if smoke else 5)
    names = ["Groceries"] if smoke else [*data.PERSONS, DEMO]
    found: list[Run] = []
    shapes: dict[str, Shape] = {}
    skipped: list[str] = []
    if smoke:
        skipped.append("the other libraries: left out of the smoke run")
    with ExitStack() as stack:
        pythons = {} if smoke else environments(stack, skipped)
        for place, name in enumerate(names):
            progress(f"E7b {name}", place, len(names))
            pairs = sorted(demo() if name == DEMO else data.PERSONS[name]())
            if len(pairs) <= LARGEST or name in ("Jakarta", DEMO):
                shapes[name], more = measure(name, pairs, pythons, runs, seed, skipped)
                found += more
    return write(found, shapes, skipped)


def environments(stack: ExitStack, skipped: list[str]) -> dict[str, Path]:
    """The Python of each library that can be installed here."""
    pythons = {}
    for library, (name, requirements) in RIVALS.items():
        try:
            pythons[library] = stack.enter_context(environment(name, requirements))
        except Unavailable as reason:
            skipped.append(f"{library}: {reason}")
    return pythons


def measure(
    name: str,
    pairs: list[tuple[str, str]],
    pythons: dict[str, Path],
    runs: int,
    seed: int,
    skipped: list[str],
) -> tuple[Shape, list[Run]]:
    """All libraries on one set."""
    random.Random(seed).shuffle(pairs)
    counts = Counter(f"i{item}" for _, item in pairs)
    held = Counter(person for person, _ in pairs)
    shape = Shape(len(held), len(counts), len(pairs), statistics.median(held.values()))
    found = []
    with tempfile.TemporaryDirectory(prefix="topsecret-peers-") as folder:
        path = write_events(Path(folder) / "events.csv", pairs)
        for library, script in ((OURS, "topsecret_ask.py"), (COUNTED, "topsecret_counts.py")):
            answers = [
                ask(Path(sys.executable), SCRIPTS / script, path, EPSILON, DELTA, k, runs)
                for k in SIZES
            ]
            recalls = [_recall(a["items"], counts, k) for a, k in zip(answers, SIZES, strict=True)]
            found.append(Run(name, library, None, tuple(recalls), runs))
        for library, cap in product(pythons, CAPS):
            script, events = f"{RIVALS[library][0]}_peer.py", path
            if library == "OpenDP":  # its own cap keeps one item fewer, and not at random
                script = "opendp_capped_peer.py"
                events = write_events(Path(folder) / "capped.csv", capped(pairs, cap))
            try:
                words = (events, EPSILON, DELTA, cap, runs)
                answer = ask(pythons[library], SCRIPTS / script, *words, seconds=240)
            except Unavailable as reason:
                skipped.append(f"{library} with cap {cap} on {name}: {reason}")
                continue
            recalls = [_recall(answer["items"], counts, k) for k in SIZES]
            found.append(Run(name, library, cap, tuple(recalls), runs))
    return shape, found


def capped(pairs: list[tuple[str, str]], cap: int) -> list[tuple[str, str]]:
    """The first items of each person in shuffled pairs, which are random ones."""
    seen: Counter[str] = Counter()
    kept = []
    for person, item in pairs:
        seen[person] += 1
        if seen[person] <= cap:
            kept.append((person, item))
    return kept


def write_events(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """A file of events; a letter in front keeps every library from reading a name as a number."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("user", "venue"))
        table.writerows((f"p{person}", f"i{item}") for person, item in pairs)
    return path


def demo() -> set[tuple[str, str]]:
    """Who went where in the demo's city."""
    with tempfile.TemporaryDirectory() as folder:
        rows = csv.DictReader(io.StringIO(write_checkins(Path(folder)).read_text("utf-8")))
    return {(row["user"], row["place"]) for row in rows}


def _recall(answers: list[list[str]], counts: Counter[str], k: int) -> float:
    """The share of k that was named rightly; an item tied with the k-th is right."""
    least = sorted(counts.values(), reverse=True)[k - 1]
    return statistics.fmean(
        sum(counts[item] >= least for item in items[:k]) / k for items in answers
    )


def best(found: Sequence[Run], name: str, library: str, size: int) -> float | None:
    """The recall with the cap that turned out best."""
    recalls = [r.recalls[size] for r in found if (r.data, r.library) == (name, library)]
    return max(recalls, default=None)


def _cells(found: Sequence[Run], name: str) -> list[str]:
    """Recall at 10 / at 50 of each library; the best of a set (within 0.005) are bold."""
    columns = [[best(found, name, library, size) for library in LIBRARIES] for size in (0, 1)]
    shown = []
    for values in zip(*columns, strict=True):
        parts = []
        for value, column in zip(values, columns, strict=True):
            top = max(v for v in column if v is not None)
            text = "–" if value is None else f"{value:.2f}"
            parts.append(f"**{text}**" if value is not None and value >= top - 0.005 else text)
        shown.append(" / ".join(parts))
    return shown


def wins(found: Sequence[Run], size: int) -> dict[str, int]:
    """On how many sets each library is the best, or ties with the best (within 0.005)."""
    tally = dict.fromkeys(LIBRARIES, 0)
    for name in dict.fromkeys(r.data for r in found if r.data != DEMO):
        recalls = {library: best(found, name, library, size) for library in LIBRARIES}
        top = max(v for v in recalls.values() if v is not None)
        for library, value in recalls.items():
            tally[library] += value is not None and value >= top - 0.005
    return tally


def _paint(figure, found, shapes) -> None:  # type: ignore[no-untyped-def]
    for axis, size, k in zip(figure.subplots(2, 1, sharex=True), (0, 1), SIZES, strict=True):
        for turn, library in enumerate(LIBRARIES, -2):  # beside each other where they are level
            values = [best(found, name, library, size) for name in shapes]
            places = [place + 0.08 * turn for place in range(len(shapes))]
            axis.plot(places, values, "o", label=library, alpha=0.8)
        axis.set_ylabel(f"recall, k = {k}")
        axis.grid(axis="y", alpha=0.3)
    axis.set_xticks(range(len(shapes)), list(shapes), rotation=30, ha="right")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3)


def write(found: Sequence[Run], shapes: dict[str, Shape], skipped: list[str]) -> str:
    """Table, picture and page."""
    order = sorted(shapes, key=lambda name: shapes[name].typical)
    shapes = {name: shapes[name] for name in order}
    head = ["data", "library", "cap", *(f"recall k={k}" for k in SIZES)]
    rows = [
        [r.data, r.library, r.cap or "none"]
        + [f"{value:.3f}" for value in r.recalls]
        + [str(r.runs)]
        for r in found
    ]
    write_table(NAME, [*head, "runs"], rows)
    draw(NAME, lambda figure: _paint(figure, found, shapes), 10, 7)
    table = [
        [name, f"{s.persons:,}", f"{s.items:,}", f"{s.typical:g}", *_cells(found, name)]
        for name, s in shapes.items()
    ]
    tallies = [wins(found, size) for size in (0, 1)]
    sets = len(shapes.keys() - {DEMO})
    verdict = (
        f"best or level with the best on how many of {sets} sets at k = 10/50: "
        + "; ".join(
            f"{library} {tallies[0][library]}/{tallies[1][library]}" for library in LIBRARIES
        )
        + "."
    )
    runs = found[0].runs
    choice = plan(k=10, epsilon=EPSILON, delta=DELTA).recommended
    return write_page(
        NAME,
        TITLE,
        verdict,
        "Recall at k = 10 / at k = 50, the best of each set in bold (within 0.005); the sets by "
        "how many items the median person has:",
        markdown(["data", "people", "items", "items of a person", *LIBRARIES], table),
        "The rule for choosing the sets: all of `experiments/data.py` of which it is known who has "
        f"what, up to {LARGEST:,} pairs of a person and an item (for time; the limit was lowered "
        "three times while the first sets ran), and E7's Jakarta. (1, 10⁻⁶) for each person "
        "with all their rows, one more or one less, no public "
        f"list of items. Means of {runs} runs, so differences under 0.05 mean little. Recall is "
        "the share of k that was named rightly, by distinct people; an item tied with the k-th "
        "is right.",
        "The other libraries need a limit on the items of one person. Each got 1, 5 and 20, and "
        "the table shows the best of the three, chosen afterwards for each set and each k: a user "
        "would have to guess it. They return counts too; *topsecret with counts* does as well, "
        "from the same budget. Tumult Analytics is in E7 alone, for time.",
        "OpenDP 0.16 fails to sample items, keeps the first by an order of its own, and one fewer "
        "than asked for. So each person was cut down at random before it saw the file, and it was "
        "told the limit as a number of rows: its best case. topsecret's mechanism is the plan's "
        f"choice, `{choice}`; when counts are asked for, `tested`, since weighted people have no "
        "counts. A first version of `tested` was tuned on Jakarta, among other sets."
        + (f" {MADE_UP}" if DEMO in shapes else ""),
        ("Skipped: " + "; ".join(skipped) + ".") if skipped else "Nothing was skipped.",
    )
