"""``topsecret plan`` and ``topsecret account`` as their users meet them."""

import json

import pytest

from command import run


def test_a_plan_on_a_terminal() -> None:
    done = run("plan", "-k", "3", "--epsilon", "1", COLUMNS="100")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "Plan for the top 3 at epsilon = 1" in done.stdout
    assert "Recommended: limited-domain" in done.stdout
    assert "rank 61" in done.stdout
    assert "rank 4" in done.stdout


def test_a_plan_for_machines() -> None:
    done = run("plan", "-k", "1", "--epsilon", "1", "--domain-size", "100", "--json")
    record = json.loads(done.stdout)
    assert record["recommended"] == "permute-and-flip"
    assert record["question"]["domain_size"] == 100


def test_the_smallest_epsilon_for_a_lead() -> None:
    done = run("plan", "-k", "1", "--lead", "200", "--json")
    assert json.loads(done.stdout)["question"]["epsilon"] == 0.1


def test_a_simulation_with_bars() -> None:
    words = ["--shape", "zipf:1.1", "--items", "500", "--persons", "5000", "--runs", "3"]
    done = run("plan", "-k", "1", "--epsilon", "1", *words, COLUMNS="200")
    assert "Zipf's law with exponent 1.1: 500 items, 5,000 people" in done.stdout
    assert "████  1.000 ± 0.000" in done.stdout


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_every_width(columns: str) -> None:
    words = ["--shape", "zipf:1", "--items", "50", "--persons", "500", "--runs", "2"]
    done = run("plan", "-k", "1", "--epsilon", "1", *words, COLUMNS=columns)
    assert done.returncode == 0
    assert max(len(line) for line in done.stdout.splitlines()) <= int(columns)


def test_a_plan_without_a_delta() -> None:
    words = ["plan", "-k", "10", "--epsilon", "0.4", "--delta", "0", "--domain-size", "1000"]
    done = run(*words, COLUMNS="200")
    assert "no delta" in done.stdout
    assert "canonical-set" in done.stdout
    done = run(*words, "--fill", COLUMNS="200")
    assert "completed at random to 10" in done.stdout
    assert "oneshot-private-length" not in done.stdout


def test_a_plan_for_k_auto() -> None:
    done = run("plan", "-k", "auto", "--epsilon", "1")
    assert "Plan for the items that stand out at epsilon = 1" in done.stdout
    assert "Recommended: stable" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan"], "give either --epsilon 1, say, or --lead 200, say"),
        (["plan", "-k", "ten", "--epsilon", "1"], "k='ten' must be a whole number, auto or all"),
        (["plan", "-k", "0", "--epsilon", "1"], "k=0 must be at least 1; ask for one item"),
        (["plan", "--epsilon", "nan"], "epsilon=nan must be a finite number"),
        (
            ["plan", "--epsilon", "1", "--shape", "bell"],
            "shape='bell' must be zipf:EXPONENT; write --shape zipf:1.1",
        ),
        (["plan", "events.csv", "--epsilon", "1"], "Got unexpected extra argument"),
        (
            ["account", "zhu-wang", "--adjacency", "swap"],
            "adjacency='swap' must be 'add-remove' or 'replace'",
        ),
        (["account", "picks", "5", "nan"], "epsilon=nan must be finite"),
        (["account", "picks", "5", "0.1", "--tests", "1", "--sigma", "0"], "sigma=0.0 must be"),
    ],
    ids=lambda case: case[:30] if isinstance(case, str) else " ".join(case),
)
def test_a_mistake_is_one_line(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"topsecret: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [["plan"], ["account"], ["account", "picks"]], ids=" ".join)
def test_help_has_examples_and_fits(command: list[str]) -> None:
    done = run(*command, "--help", COLUMNS="80")
    assert "topsecret " in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_the_published_pate_run_by_one_command() -> None:
    """The recursion gives 3.673, on a coarser grid 3.71."""
    done = run("account", "zhu-wang", "--adjacency", "add-remove")
    charged = [float(line.split()[0]) for line in done.stdout.splitlines()[2:]]
    assert charged == pytest.approx([3.66, 71, 21.5, 20.5, 4.35, 3.92, 3.71], rel=0.011)
    both = json.loads(run("account", "zhu-wang", "--json").stdout)
    assert [table["adjacency"] for table in both] == ["add-remove", "replace"]


def test_every_bound_of_a_sequence() -> None:
    done = run("account", "picks", "50", "0.1")
    assert "* optimal        1.539" in done.stdout
    assert "Durfee & Rogers 2019, Lemma 4.4" in done.stdout
    record = json.loads(run("account", "picks", "50", "0.1", "--json").stdout)
    assert record["epsilon"] == min(bound["epsilon"] for bound in record["bounds"])
    with_tests = run("account", "picks", "50", "0.1", "--tests", "1", "--sigma", "20", "--json")
    assert json.loads(with_tests.stdout)["epsilon"] > record["epsilon"]
