"""``topsecret pate`` and ``topsecret rank``: thin layers with clear mistakes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from topsecret.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    captured = capsys.readouterr()
    code = stop.value.code
    return int(code) if isinstance(code, int) else 0, captured.out, captured.err


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    truth = rng.random((20, 4)) < 0.4
    truth[:, 0] = True
    ballots = truth[:, None, :] ^ (rng.random((20, 300, 4)) < 0.02)
    path = tmp_path / "votes.npz"
    np.savez_compressed(path, votes=ballots, labels=["sun", "rain", "snow", "fog"])
    np.savez(tmp_path / "counts.npz", counts=ballots.sum(axis=1))
    return path


def test_votes_become_label_sets(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "pate", str(votes), "--epsilon", "20", "--method", "stable")
    assert code == 0
    assert "sun" in out.splitlines()[0]
    assert "20 queries answered with epsilon = " in out
    assert (
        "when one teacher's votes are replaced. That covers one training record only if every "
        "record was used to train a single teacher, which this command cannot check. Nothing was "
        "recorded in a ledger." in out
    )
    words = ["--epsilon", "20", "--method", "stable", "--adjacency", "add-remove"]
    _, out, _ = run(capsys, "pate", str(votes), *words)
    assert "when one teacher is added or removed; it does not cover one training record, " in out


def test_json_has_one_object_per_line(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--epsilon", "9", "--method", "pate-tau", "--max-votes", "3", "--json"]
    code, out, _ = run(capsys, "pate", str(votes), *options)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["query"] for line in lines[:-1]] == list(range(1, 21))
    assert all(line["epsilon"] <= 9 for line in lines)
    assert lines[-1]["queries"] == 20


def test_counts_need_the_number_of_teachers(
    votes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = str(votes.with_name("counts.npz"))
    assert run(capsys, "pate", counts, "--epsilon", "9")[2] == (
        "topsecret: a file of counts does not say how many voted; pass --teachers\n"
    )
    words = ["--epsilon", "9", "--teachers", "300", "--method", "pate", "--queries", "2"]
    code, out, _ = run(capsys, "pate", counts, *words)
    assert code == 0
    assert out.count("\n") == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"votes": np.zeros((3, 2))}, "has votes of the shape (3, 2)"),
        ({"other": np.zeros(3)}, "holds no votes that can be streamed"),
        ({"votes": np.zeros((3, 2, 2)), "labels": ["a"]}, "names 1 labels for 2"),
    ],
)
def test_files_of_another_shape_are_told(
    tmp_path: Path, content: dict[str, object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, **content)  # type: ignore[arg-type]
    code, _, err = run(capsys, "pate", str(path), "--epsilon", "1")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_damaged_file_ends_in_one_line(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes.write_bytes(votes.read_bytes()[:200])
    code, _, err = run(capsys, "pate", str(votes), "--epsilon", "1")
    assert code == 2
    assert "holds no votes that can be streamed" in err


@pytest.fixture
def matches(tmp_path: Path) -> Path:
    path = tmp_path / "matches.csv"
    rows = ["ada,bob"] * 900 + ["bob,eve"] * 500 + ["ada,eve"] * 950
    path.write_text("winner,loser\n" + "\n".join(rows) + "\n")
    return path


def test_matches_become_a_ranking(matches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rank", str(matches), "--winner", "winner", "--loser", "loser", "--epsilon", "1"]
    code, out, _ = run(capsys, *words, "-k", "2")
    assert code == 0
    assert out.index("ada") < out.index("bob") < out.index("Receipt")
    assert "as declared by the caller" in " ".join(out.split())
    spectral = ["--method", "spectral", "-k", "1", "--json"]
    code, out, _ = run(capsys, *words[:-1], "200", *spectral)
    assert json.loads(out)["items"] == ["ada"]


def test_wrong_methods_are_told(matches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rank", str(matches), "--winner", "winner", "--loser", "loser", "--epsilon", "1"]
    assert (
        "method='elo' must be 'strength', 'counting' or 'spectral'"
        in run(capsys, *words, "--method", "elo")[2]
    )


def test_help_stays_light() -> None:
    code = (
        "import sys, topsecret.cli.commands; "
        "sys.exit(bool({'sklearn', 'scipy', 'joblib'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_votes_of_persons_become_strengths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "votes.csv"
    rows = [f"v{n},a,b" for n in range(400)] + [f"v{n},b,c" for n in range(300)]
    path.write_text("\n".join(["voter,chosen,other", *rows]) + "\n", encoding="utf-8")
    words = ["rank", str(path), "--winner", "chosen", "--loser", "other", "--epsilon", "2"]
    person = ["--person", "voter", "--comparisons-per-person", "3"]
    plot = tmp_path / "bars.svg"
    code, out, _ = run(capsys, *words, *person, "--csv", "--plot", str(plot))
    assert code == 0
    assert [line.split(",")[1] for line in out.splitlines()[1:]] == ["a", "b", "c"]
    assert plot.stat().st_size > 0
    code, out, _ = run(capsys, *words, *person, "--json")
    assert json.loads(out)["per_person"] == 3
    code, out, _ = run(capsys, *words, *person)
    assert "±" in out
    assert "how any one person (voter) decided" in " ".join(out.split())
    assert run(capsys, *words, "--person", "voter")[2] == (
        "topsecret: person='voter' and comparisons_per_person=None go together: a person is "
        "protected in all of a limited number of comparisons\n"
    )
    assert run(capsys, *words, "--method", "counting", "--csv")[2] == (
        "topsecret: --csv and --plot are for --method strength; leave them out\n"
    )


def test_soft_answers_are_written_with_their_noise(
    votes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pate", str(votes), "--epsilon", "20", "--soft", "--max-votes", "2"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "The noise of every share has a standard deviation of 0.0" in out
    code, out, _ = run(capsys, *words, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert set(lines[0]["shares"]) == {"sun", "rain", "snow", "fog"}
    deviation = lines[-1]["share_deviation"]
    stored = votes.with_name("shares.npz")
    code, out, _ = run(capsys, *words, "--output", str(stored))
    assert code == 0
    with np.load(stored) as found:
        assert found["shares"].shape == (20, 4)
        assert float(found["noise_deviation"]) == deviation
        assert float(found["epsilon"]) <= 20
    table = votes.with_name("shares.csv")
    run(capsys, *words, "--output", str(table))
    rows = table.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "query,sun,rain,snow,fog,noise_deviation"
    assert len(rows) == 21
    code, out, _ = run(capsys, *words[:4], "--plan")
    assert "method 'shares', whole ballots" in out


def test_soft_options_are_checked(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pate", str(votes), "--epsilon", "20"]
    hard = [*words, "--method", "stable"]
    assert "only with them; leave them out" in run(capsys, *hard, "--output", "x.npz")[2]
    assert "does not go with --method stable" in run(capsys, *hard, "--soft")[2]
    assert "method='x' must be 'auto', 'stable'" in run(capsys, *words, "--method", "x")[2]
    assert "must end in .npz or .csv" in run(capsys, *words, "--soft", "--output", "x.txt")[2]
    missing = run(capsys, *words, "--soft", "--output", "/no/such/folder/x.csv")
    assert missing[0] == 2
    assert "cannot be written" in missing[2]


def test_shares_are_the_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the cut that ``PateClassifier`` would choose; a file of counts is of whole ballots."""
    votes = np.zeros((3, 40, 30), dtype=bool)
    path, counts = tmp_path / "v.npz", tmp_path / "c.npz"
    np.savez(path, votes=votes)
    np.savez(counts, counts=votes.sum(axis=1))
    words = ["--epsilon", "2", "--json"]
    code, out, _ = run(capsys, "pate", str(path), *words)
    assert code == 0
    last = json.loads(out.splitlines()[-1])
    soft = run(capsys, "pate", str(path), *words, "--soft", "--max-votes", "4")[1]
    assert last["share_deviation"] == json.loads(soft.splitlines()[-1])["share_deviation"]
    whole = run(capsys, "pate", str(counts), "--teachers", "40", *words)[1]
    assert json.loads(whole.splitlines()[-1])["share_deviation"] > last["share_deviation"]
