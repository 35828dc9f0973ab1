"""Series: a list every period, counts that never move, noise that meets one version of them."""

import contextlib
import datetime
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import continued
import pytest

from topsecret import Schedule, Series, top_k
from topsecret.errors import BudgetExceeded, InvalidParameter, LedgerError, SourceError
from topsecret.ledger import Flexible, Ledger
from topsecret.ledger.publications import Publications
from topsecret.questions import series as asked
from topsecret.questions.series_shown import progress

MONDAYS = ("2026-01-12", "2026-01-19", "2026-01-26", "2026-02-02")
Row = tuple[str, str, str]


class Killed(BaseException):
    """The program ends here."""


def rows_of(week: int, persons: range, place: str) -> list[Row]:
    day = datetime.date(2026, 1, 5) + datetime.timedelta(days=7 * week)
    return [(str(day + datetime.timedelta(days=one % 7)), f"u{one}", place) for one in persons]


FIRST = rows_of(0, range(400), "w0")
SECOND = FIRST + rows_of(1, range(400), "w1")


def write(folder: Path, rows: Sequence[Row]) -> Path:
    path = folder / "visits.csv"
    path.write_text("day,user,place\n" + "".join(",".join(row) + "\n" for row in rows))
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return opened(tmp_path)


def opened(folder: Path) -> Ledger:
    ledger = Ledger(folder / "ledger.db")
    ledger.open_budget("visits", Flexible.of(epsilon=9, delta=1e-3), person="user")
    return ledger


def series(tmp_path: Path, ledger: Ledger, **other: Any) -> Series:
    given = continued.terms(tmp_path) | {"ledger": ledger} | other
    return Series(str(tmp_path / "visits.csv"), **given)


def named(shown: Any) -> set[object]:
    return set() if shown.release is None else set(shown.release.items)


def test_every_period_has_a_list_with_values_and_growth(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path, FIRST)
    weekly = series(tmp_path, ledger)
    assert weekly.run("2026-01-11").release is None
    first = weekly.run(MONDAYS[0])
    assert named(first) == {"w0"}
    assert first.growth is None
    write(tmp_path, SECOND)
    second = weekly.run(MONDAYS[1])
    assert named(second) == {"w0", "w1"}
    assert (second.period, second.drawn_for, second.held) == (2, 2, False)
    assert second.values is not None
    assert second.deviation is not None
    assert all(abs(value - 400) < 8 * second.deviation for value in second.values)
    assert second.growth is not None
    grown = dict(zip(second.release.items, second.growth, strict=True))  # type: ignore[union-attr]
    assert grown["w1"] is None
    assert second.growth_deviation is not None
    assert abs(grown["w0"] or 0) < 8 * second.growth_deviation
    assert weekly.shown(1) == first
    assert json.loads(second.to_json())["publication"] == "series"


def test_windows_count_their_periods_and_pairs_again(tmp_path: Path, ledger: Ledger) -> None:
    rows = FIRST + rows_of(2, range(400), "w0") + rows_of(1, range(400), "w1")
    write(tmp_path, rows)
    two = series(tmp_path, ledger, kind="window", window=2, max_counts=4, until=None)
    assert two.terms.periods.count == 3650
    shown = [two.run(monday) for monday in MONDAYS]
    assert [named(one) for one in shown] == [{"w0"}, {"w0", "w1"}, {"w0", "w1"}, {"w0", "w1"}]
    values = [dict(zip(one.release.items, one.values, strict=True)) for one in shown]  # type: ignore
    deviation = shown[-1].deviation or 0
    assert abs(values[3]["w0"] - 400) < 8 * deviation  # counted again in the third week
    assert abs(values[3]["w1"]) < 8 * deviation  # known for ever, and nobody's any more


def test_no_name_of_an_item_ends_a_series(tmp_path: Path, postgres_url: str) -> None:
    """An index of PostgreSQL takes no text of 8,000 random letters."""
    random = "".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(125))
    day = FIRST[0][0]
    write(tmp_path, [*FIRST, (day, "zoe", random), (day, "zoe", "a\0b"), (day, "zoe", "😀" * 99)])
    with contextlib.closing(Ledger(postgres_url)) as ledger:
        ledger.open_budget("visits", Flexible.of(epsilon=9, delta=1e-3), person="user")
        weekly = series(tmp_path, ledger)
        assert named(weekly.run(MONDAYS[0])) == {"w0"}
        sums = weekly._counts.sums(1)[1]
    assert len(sums) == 4
    assert max(map(len, sums)) < 300
    assert len(asked.label_of(("😀" * 60,) * 5)) < 1500
    assert asked.item_of(asked.label_of(("a", random, 3))) == ("a", asked._cut(random), 3)


def test_it_says_what_it_rests_on(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path, FIRST)
    told = str(series(tmp_path, ledger).run(MONDAYS[0]))
    assert "cannot break the keyed hash BLAKE2b" in " ".join(told.split())
    assert "depends on earlier lists" not in " ".join(told.split())
    two = series(tmp_path, ledger, kind="window", window=2, name="two").run(MONDAYS[0])
    receipt = " ".join(str(two.release).split())
    assert "no row depends on earlier lists of the series" in receipt
    assert "the guarantee does not cover rows that do" in " ".join(two.together.split())
    one = series(tmp_path, ledger, kind="window", window=1, name="one").run(MONDAYS[0])
    assert "earlier lists" not in one.together


def test_one_charge_at_the_start_beside_other_questions(tmp_path: Path, ledger: Ledger) -> None:
    path = write(tmp_path, FIRST)
    weekly = series(tmp_path, ledger)
    spent = ledger.account("visits").spent
    numbers = weekly.terms.numbers
    assert 0 <= spent["rho"] - numbers.mu_squared / 2 < 1e-12
    assert 0 <= spent["delta"] - numbers.failure < 1e-12
    for monday in MONDAYS:
        series(tmp_path, ledger, start=None).run(monday)
    assert ledger.account("visits").spent == spent
    top_k(str(path), item="place", person="user", k=1, epsilon=1, ledger=ledger, dataset="visits")
    assert ledger.account("visits").spent["rho"] > spent["rho"]
    with pytest.raises(BudgetExceeded):
        series(tmp_path, ledger, name="dear", epsilon=40)
    assert not ledger.check().faults


def test_it_resumes_from_the_ledger_alone(tmp_path: Path, ledger: Ledger) -> None:
    path = write(tmp_path, FIRST)
    first = series(tmp_path, ledger, where="user != 'u0'")
    found = Series.resume(str(path), ledger=ledger, dataset="visits", name="weekly")
    assert found.terms == first.terms
    assert named(found.run(MONDAYS[0])) == {"w0"}
    assert progress(ledger, "visits", "weekly")["lists"][0]["state"] == "drawn"
    with pytest.raises(InvalidParameter, match="has no series 'other'"):
        Series.resume(str(path), ledger=ledger, dataset="visits", name="other")
    with pytest.raises(InvalidParameter, match="was begun with other terms"):
        series(tmp_path, ledger, k=3)
    with pytest.raises(InvalidParameter, match="no schedule of this version"):
        Schedule.resume(str(path), ledger=ledger, dataset="visits", name="weekly")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "sliding"}, "kind='sliding' must be"),
        ({"window": 2}, "window needs kind='window'"),
        ({"until": None}, "cumulative sums need a last day"),
        ({"k": "all"}, "k='all' of a series must be a whole number"),
        ({"k": 0}, "k=0"),
        ({"late": -1}, "late=-1 must be a number of periods"),
        ({"max_counts": 0}, "max_counts=0"),
        ({"time": ""}, "time must be the column"),
        ({"delta": 0}, "delta=0"),
        ({"kind": "window", "until": None, "every": "900 years"}, "is too long for a series"),
    ],
)
def test_a_mistake_is_told_and_free(
    tmp_path: Path, ledger: Ledger, wrong: dict[str, Any], words: str
) -> None:
    write(tmp_path, FIRST)
    with pytest.raises(InvalidParameter, match=words):
        series(tmp_path, ledger, **wrong)
    assert ledger.position("visits") == 1


def test_rows_of_missed_periods_count_in_the_next(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path, SECOND)
    weekly = series(tmp_path, ledger)
    third = weekly.run(MONDAYS[2])
    assert (third.drawn_for, named(third)) == (3, {"w0", "w1"})
    assert weekly.shown(2).release is None
    assert weekly.run(MONDAYS[1]).release is None


class Meetings:
    """Every version of the counts that each period's noise was computed for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: dict[bytes, dict[str, int]] = {}
        real = asked.drawn_values

        def watched(numbers: Any, key: bytes, nonces: Any, sums: Any, known: Any) -> Any:
            assert self.seen.setdefault(key + nonces[-1], dict(sums)) == sums
            return real(numbers, key, nonces, sums, known)

        monkeypatch.setattr(asked, "drawn_values", watched)


OTHERS = {
    "changed": [("2026-01-06", "u0", "w9"), *FIRST[1:]],
    "fewer": FIRST[:-1],
    "none": [],
    "duplicated": FIRST + FIRST,
    "more": FIRST + rows_of(0, range(400, 500), "w0"),
    "restored": FIRST,
}


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        *((kind, step) for kind in ("cumulative", "window") for step in ("", "sealed")),
        *(("cumulative", step) for step in ("read", "sealing", "drawn", "storing")),
    ],
)
def test_a_key_never_meets_two_versions_of_a_period(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, step: str, kind: str
) -> None:
    """Rows change after every way in which the first run may end; counts that met noise do not."""
    write(tmp_path, FIRST)
    more = {"kind": kind, "window": 2 if kind == "window" else 1}
    weekly = series(tmp_path, ledger, **more)
    meetings = Meetings(monkeypatch)
    if not step:
        weekly.run(MONDAYS[0])
    else:
        with monkeypatch.context() as patched:
            patched.setattr(*continued.ending(step, _killed))
            with pytest.raises(Killed):
                weekly.run(MONDAYS[0])
    shown = []
    for rows in OTHERS.values():
        write(tmp_path, rows)
        shown.append(series(tmp_path, ledger, **more).run(MONDAYS[0]).to_dict())
    assert all(one == shown[0] for one in shown)
    sealed_first = step in ("", "sealed", "drawn", "storing")
    for version in ("changed", "none", "restored"):
        write(tmp_path, OTHERS[version])
        series(tmp_path, ledger, **more).run(MONDAYS[1])
        nonces, sums = weekly._counts.sums(2)
        assert set(nonces) == {1, 2}
        if sealed_first:  # what was counted stays counted; "changed" came late with one pair more
            assert sums == {'"w0"': 400, '"w9"': 1}
    assert len(meetings.seen) == 2
    assert not ledger.check().faults


def test_of_two_programs_that_read_at_once_one_seals(tmp_path: Path, ledger: Ledger) -> None:
    """The other one finds that it came too late, whatever rows it has read."""
    write(tmp_path, FIRST)
    here, there = series(tmp_path, ledger), series(tmp_path, ledger)
    read = here._found(0, 1)
    write(tmp_path, OTHERS["changed"])
    changed = there._found(0, 2)
    assert here._counts.seal(1, 0, read)
    before = here._counts.sums(1)
    assert not there._counts.seal(2, 0, changed)
    assert not there._counts.seal(1, 0, changed)
    assert here._counts.sums(1) == before
    assert before[1] == {'"w0"': 400}


def _killed() -> None:
    raise Killed


def test_late_rows_count_when_they_are_found(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path, FIRST)
    weekly = series(tmp_path, ledger, late=1)
    weekly.run(MONDAYS[0])
    write(tmp_path, FIRST + rows_of(0, range(300), "late"))
    assert named(weekly.run(MONDAYS[0])) == {"w0"}
    assert named(weekly.run(MONDAYS[1])) == {"w0", "late"}
    write(tmp_path, FIRST + rows_of(0, range(300), "late") + rows_of(0, range(300), "too late"))
    assert weekly._counts.sums(2)[1] == {'"w0"': 400, '"late"': 300}
    weekly.run(MONDAYS[2])
    assert weekly._counts.sums(3)[1] == {'"w0"': 400, '"late"': 300}


def test_a_person_has_so_many_counts_for_life(tmp_path: Path, ledger: Ledger) -> None:
    rows = [("2026-01-06", "ann", f"p{n}") for n in range(9)]
    write(tmp_path, rows + [("2026-01-13", "ann", f"q{n}") for n in range(9)])
    weekly = series(tmp_path, ledger)
    for monday in MONDAYS:
        weekly.run(monday)
        assert sum(weekly._counts.sums(4)[1].values()) == 3


def test_a_failure_while_reading_is_tried_again(tmp_path: Path, ledger: Ledger) -> None:
    path = write(tmp_path, FIRST)
    weekly = series(tmp_path, ledger)
    whole = path.read_bytes()
    path.write_bytes(whole + b'"no end\n')
    with pytest.raises(SourceError):
        weekly.run(MONDAYS[0])
    path.unlink()
    with pytest.raises(SourceError):
        weekly.run(MONDAYS[0])
    path.write_bytes(whole)
    assert named(weekly.run(MONDAYS[0])) == {"w0"}
    assert not ledger.check().faults


def test_counts_that_were_replaced_are_found(tmp_path: Path, ledger: Ledger) -> None:
    from sqlalchemy import text

    write(tmp_path, SECOND)
    weekly = series(tmp_path, ledger)
    weekly.run(MONDAYS[0])
    with ledger._store.writing() as connection:
        connection.execute(text("UPDATE series_seals SET nonce = '00'"))
    with pytest.raises(LedgerError, match="a part of the ledger was replaced"):
        weekly.run(MONDAYS[1])


def test_nothing_of_a_person_is_kept_in_clear(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path, [("2026-01-06", "Rumpelstilzchen", "w0")])
    weekly = series(tmp_path, ledger)
    weekly.run(MONDAYS[0])
    ledger.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("ledger.db*"))
    assert b"Rumpelstilzchen" not in kept
    assert "w0" not in repr(weekly) + repr(weekly._counts)


@pytest.mark.parametrize("step", continued.STEPS)
def test_ended_at_any_step_nothing_is_spent_twice(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Nothing is shown that was not stored, and the next run shows what was sealed."""
    write(tmp_path, FIRST)
    with monkeypatch.context() as patched:
        patched.setattr(*continued.ending(step, _killed))
        with pytest.raises(Killed):
            series(tmp_path, ledger).run(MONDAYS[0])
    _check_after(tmp_path, ledger, step)


def test_killed_at_any_step_nothing_is_spent_twice(tmp_path: Path) -> None:
    """The same with SIGKILL, which no code of ours sees."""
    ledgers = {}
    for step in continued.STEPS:
        folder = tmp_path / step
        folder.mkdir()
        write(folder, FIRST)
        ledgers[step] = opened(folder)
    words = [sys.executable, continued.__file__, str(tmp_path)]
    killed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert killed.stdout.split("\n") == [*(f"{step} -9" for step in ledgers), ""], killed.stderr
    for step, ledger in ledgers.items():
        assert not (tmp_path / step / "shown").exists()
        _check_after(tmp_path / step, ledger, step)
        ledger.close()


def _check_after(tmp_path: Path, ledger: Ledger, step: str) -> None:
    books = Publications(ledger)
    publication = books.find("visits", "weekly")
    state = {} if publication is None else books.periods(publication)
    answers = [one.answer for one in state.values() if one.answer is not None]
    assert len(answers) == (step in ("stored", "shown"))
    write(tmp_path, [])  # whatever the rows are now
    again = series(tmp_path, ledger).run(MONDAYS[0])
    late = step in ("sealed", "drawn", "storing", "stored", "shown")
    assert named(again) == ({"w0"} if late else set())
    assert len([e for e in ledger.history("visits") if e.event == "reserved"]) == 1
    publication = books.find("visits", "weekly")
    assert publication is not None
    stored = books.periods(publication)[1].answer
    assert stored is not None
    assert not answers or stored == answers[0]
    assert not ledger.check().faults
