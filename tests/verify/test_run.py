"""Every mechanism is verified by being there; the command says what it found."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from flint import arb
from planted import Planted, Stated

import topsecret.mechanisms
from topsecret.accounting import NO_LOSS
from topsecret.cli import main
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import GumbelTopK, LimitedDomain
from topsecret.verify import run

QUICK = ["--items", "2", "--max-count", "2", "--samples", "200", "--processes", "1"]


def command(arguments: Sequence[str]) -> int:
    with pytest.raises(SystemExit) as done:
        main(["verify", *arguments])
    assert isinstance(done.value.code, int)
    return done.value.code


@pytest.mark.parametrize("name", sorted(set(topsecret.mechanisms.__all__) - {"Mechanism"}))
def test_every_mechanism_names_cases(name: str) -> None:
    assert run.verifiable()[name].verification_cases()  # type: ignore[attr-defined]


def test_every_mechanism_says_which_neighbours_it_was_checked_with() -> None:
    both = {task.mechanism.adjacency for task in run.tasks(["LimitedDomain"], 4, 4, 1)}  # type: ignore[attr-defined]
    assert both == {"add-remove", "replace"}


def test_an_unknown_mechanism_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidParameter, match=r"choose from .*GumbelTopK, .*LimitedDomain"):
        run.tasks(["LimitedDomian"], 4, 4, 1)


def test_the_alarm_rate_is_that_of_the_whole_run() -> None:
    rates = [task.alarm_rate for task in run.tasks([], 4, 4, 10) if task.samples]
    assert sum(rates) == pytest.approx(run.ALARM_RATE)


def test_no_samples_means_no_sampler_test() -> None:
    assert all(task.samples is None for task in run.tasks([], 4, 4, 0))


def test_two_processes_find_what_one_finds() -> None:
    one = run.verify(["LimitedDomain"], items=2, max_count=2, samples=0, processes=1)
    two = run.verify(["LimitedDomain"], items=2, max_count=2, samples=0, processes=2)
    assert one.passed
    assert one.privacy == two.privacy


def test_the_command_shows_what_it_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["LimitedDomain", *QUICK]) == 0
    shown = capsys.readouterr()
    assert "LimitedDomain\n" in shown.out
    assert "tightest at epsilon=" in shown.out
    assert "GumbelTopK" not in shown.out
    assert f"{2 * len(LimitedDomain.verification_cases())} checks passed" in shown.out
    assert shown.err == ""


def test_json_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["LimitedDomain", "--json", *QUICK]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["passed"] is True
    assert record["privacy"][0]["tightest"]["claim"] > 0
    assert len(record["samplers"]) == len(LimitedDomain.verification_cases())


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_failure_is_exit_code_one_with_the_counterexample(
    form: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = GumbelTopK(1, 10 / 7), GumbelTopK(1, 0.95 * 10 / 7)
    planted = Planted(claims=right, law=wrong, draws=wrong)
    monkeypatch.setattr(GumbelTopK, "verification_cases", lambda: (planted,))
    assert command(["GumbelTopK", *form, *QUICK]) == 1
    shown = capsys.readouterr().out
    assert "FAILED" in shown or json.loads(shown)["passed"] is False
    assert "divergence" in shown


def test_what_is_not_even_a_law_is_exit_code_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    half = Stated(lambda histogram: {("a",): arb(0.5)}, NO_LOSS)
    monkeypatch.setattr(LimitedDomain, "verification_cases", lambda: (half,))
    assert command(["LimitedDomain", "--samples", "0", "--processes", "1"]) == 1
    assert "add up to" in capsys.readouterr().err


def test_an_unknown_name_is_exit_code_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["Nope"]) == 2
    assert "GumbelTopK, LaplaceRanking, LeadingRises" in capsys.readouterr().err


def test_a_size_that_would_not_finish_is_exit_code_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["LimitedDomain", "--items", "12", "--processes", "1"]) == 2
    assert "lower one of them" in capsys.readouterr().err


def test_the_proof_note_is_there() -> None:
    note = Path(__file__).parents[2] / "docs" / "proofs" / "verification.md"
    assert "What a pass does not prove" in note.read_text(encoding="utf-8")
