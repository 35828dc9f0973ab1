"""Every experiment runs in its small version and writes what it promises."""

import csv
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments.e4_composition_ratio import lattice_epsilon
from experiments.index import verdict_of, write_index
from experiments.printed_accounting import largest, mironov, misprinted
from experiments.registry import EXPERIMENTS
from experiments.report import RESULTS, writing_to
from experiments.trials import Mean, score_lost, share_found

from experiments import data
from topsecret.cli.reproduce import find_checkout

ROOT = Path(__file__).parents[2]

HERE = [name for name, experiment in EXPERIMENTS.items() if experiment.present]
LONG = ("E1", "E2a", "E3b", "E7b", "E8")
"""Their small versions are not small; ``make soak`` runs them."""
PICTURES = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("matplotlib") is None, reason="needs matplotlib"
)


@PICTURES
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak] if name in LONG else [])
        for name in HERE
        if name != "E7"
    ],
)
@pytest.mark.filterwarnings("default")  # other libraries' warnings are theirs
def test_the_small_version_writes_table_picture_and_verdict(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    if experiment.needs_data and not data.available():
        pytest.skip("needs the data folder")
    with writing_to(tmp_path):
        line = experiment.load()(smoke=True, seed=1)
    page = tmp_path / f"{experiment.page}.md"
    assert verdict_of(page) == line
    assert (tmp_path / f"{experiment.page}.svg").read_text("utf-8").count("<svg") == 1
    with (tmp_path / f"{experiment.page}.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.reader(file))
    assert len(table) > 2
    assert {len(row) for row in table} == {len(table[0])}
    assert "nan" not in page.read_text("utf-8").lower().split()


@PICTURES
def test_two_processes_share_the_work() -> None:
    words = [sys.executable, "-m", "experiments", "E2b", "E5", "--smoke", "--processes", "2"]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert {line.split(":")[0] for line in run.stdout.splitlines()} >= {"E2b", "E5"}


@PICTURES
def test_the_same_seed_gives_the_same_numbers(tmp_path: Path) -> None:
    tables = []
    for turn in ("first", "second"):
        with writing_to(tmp_path / turn):
            EXPERIMENTS["E5"].load()(smoke=True, seed=7)
        tables.append((tmp_path / turn / "e5-oneshot-noise.csv").read_bytes())
    assert tables[0] == tables[1]


def test_an_item_tied_with_the_last_is_correct_and_the_next_is_not() -> None:
    counts = np.array([9, 5, 5, 4])
    assert share_found(counts, (0, 2), 2) == 1
    assert share_found(counts, (0, 3), 2) == 0.5
    assert score_lost(counts, (0, 3), 2) == pytest.approx(1 / 14)


def test_a_mean_has_its_interval() -> None:
    mean = Mean.of([0.0, 1.0, 0.0, 1.0])
    assert mean.mean == 0.5
    assert mean.half_width == pytest.approx(1.96 * math.sqrt(1 / 3) / 2)


def test_the_lattice_of_the_optimal_composition_follows_its_lemma() -> None:
    k, epsilon, i = 60, 0.1, 10
    delta = (
        sum(
            math.comb(k, j) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon))
            for j in range(i)
        )
        / (1 + math.exp(epsilon)) ** k
    )
    assert delta < 1e-6
    found, spent = lattice_epsilon(k, epsilon)
    assert found <= (k - 2 * i) * epsilon
    assert delta <= spent <= 1e-6


def test_the_misprinted_conversion_allows_too_much() -> None:
    right = largest(lambda rho: mironov(rho, 1e-6), 1.0)
    wrong = largest(lambda rho: misprinted(rho, 1e-6), 1.0)
    assert mironov(right, 1e-6) == pytest.approx(1.0)
    assert wrong > 1.8 * right


def test_the_committed_index_is_that_of_the_committed_pages(tmp_path: Path) -> None:
    committed = (RESULTS / "README.md").read_text("utf-8")
    with writing_to(tmp_path):
        written = write_index(RESULTS).read_text("utf-8")
    assert written == committed


def test_links_of_the_committed_pages_lead_somewhere() -> None:
    for page in RESULTS.glob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text("utf-8")):
            assert (RESULTS / target).exists(), f"{page.name}: {target}"


def test_no_result_shows_a_machine() -> None:
    for path in RESULTS.iterdir():
        assert b"/home/" not in path.read_bytes(), path.name


def reproduce(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "topsecret", "reproduce", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_command_lists_them_all() -> None:
    done = reproduce("--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(EXPERIMENTS)


def test_an_unknown_experiment_is_one_clear_line() -> None:
    done = reproduce("E99")
    assert done.returncode == 2
    assert done.stdout.startswith("unknown experiment E99; there are E1, E2a")


def test_a_missing_data_folder_is_one_clear_line(tmp_path: Path) -> None:
    done = reproduce("E1", "--data", str(tmp_path / "none"))
    assert done.returncode == 2
    assert done.stderr == (
        f"topsecret: data={str(tmp_path / 'none')!r} must be a folder; name the one with the data\n"
    )


def test_without_a_checkout_there_is_none_to_find(tmp_path: Path) -> None:
    assert find_checkout([tmp_path]) is None
    assert find_checkout([tmp_path, ROOT / "src" / "topsecret"]) == ROOT
