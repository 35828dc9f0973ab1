"""Schedules: lists at public times, paid for once, resumed from the ledger, killed anywhere."""

import datetime
import itertools
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import scheduled

from topsecret.errors import BudgetExceeded, InvalidParameter, SourceError
from topsecret.exact.rounding import rounded_up
from topsecret.ledger import Flexible, Ledger, Metered
from topsecret.ledger.publications import Publications
from topsecret.questions.answer import planned
from topsecret.questions.periods import Periods, moment
from topsecret.questions.schedule import Schedule, progress, write_off_list
from topsecret.questions.schedule_terms import due_periods, terms_of


def write(folder: Path, weeks: int = 4) -> Path:
    """Place w<n> is everybody's from week n on, and nobody's before."""
    first = datetime.date(2026, 1, 5)
    rows = [
        f"{first + datetime.timedelta(days=7 * week + person % 7)},u{person},w{week}"
        for week in range(weeks)
        for person in range(400)
    ]
    path = folder / "visits.csv"
    path.write_text("day,user,place\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    opened = Ledger(tmp_path / "ledger.db")
    opened.open_budget("visits", Flexible.of(epsilon=9, delta=1e-3), person="user")
    return opened


def schedule(tmp_path: Path, ledger: Ledger, **other: Any) -> Schedule:
    asked = scheduled.terms(tmp_path) | {"ledger": ledger} | other
    return Schedule(str(tmp_path / "visits.csv"), **asked)


@pytest.mark.parametrize("number", [Decimal("0.1"), Fraction(1, 10), Fraction(1, 3)])
def test_a_budget_that_is_no_float_is_rounded_down(tmp_path: Path, number: Any) -> None:
    given = scheduled.terms(tmp_path) | {"epsilon": number, "delta": number / 10**6}
    for name in ("dataset", "ledger", "name"):
        given.pop(name, None)
    asked = terms_of(**given).asked
    assert Fraction(asked["epsilon"]) <= Fraction(number)
    assert Fraction(asked["delta"]) <= Fraction(number / 10**6)


@pytest.mark.parametrize(
    ("every", "start", "until", "count", "last"),
    [
        ("week", "2026-01-05", "2026-01-11", 1, "2026-01-12"),
        ("week", "2026-01-05", "2026-01-17", 1, "2026-01-12"),
        ("2 weeks", "2026-01-05", "2026-02-01", 2, "2026-02-02"),
        ("month", "2025-11-28", "2026-03-27", 4, "2026-03-28"),
        ("quarter", "2026-01-01", "2026-12-31", 4, "2027-01-01"),
        ("year", "2024-02-28", "2026-02-27", 2, "2026-02-28"),
        ("day", "2024-02-28", "2024-03-01", 3, "2024-03-02"),
    ],
)
def test_periods_are_half_open(every: str, start: str, until: str, count: int, last: str) -> None:
    periods = Periods.of(start=start, every=every, until=until)
    edges = [periods.bounds(period) for period in periods]
    assert len(edges) == periods.count == count
    assert str(edges[0][0]) == start
    assert str(edges[-1][1]) == last
    assert all(one[1] == next_[0] for one, next_ in itertools.pairwise(edges))
    end = datetime.datetime.combine(edges[-1][1], datetime.time())
    assert periods.ended(end) == count
    assert periods.ended(end - datetime.timedelta(microseconds=1)) == count - 1
    assert periods.ended(end + datetime.timedelta(days=9999)) == count


def test_now_is_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    told = moment(datetime.datetime(2026, 1, 12, 1, tzinfo=zone))
    assert told == datetime.datetime(2026, 1, 11, 23)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"every": "fortnight"}, "every='fortnight' must be day, week"),
        ({"until": "2026-01-06"}, "must leave room for one week"),
        ({"until": "soon"}, "until='soon' must be a day"),
        ({"start": "2026-01-31", "every": "month", "until": "2027-01-01"}, "every month has"),
        ({"kind": "sliding"}, "kind='sliding' must be"),
        ({"window": 2}, "window needs kind='window'"),
        ({"kind": "window", "window": 9}, "from 1 to 4"),
        ({"every": "day", "until": "2090-01-01"}, "more than 10000 periods"),
        ({"k": 0}, "k=0"),
    ],
)
def test_a_mistake_is_told_and_free(
    tmp_path: Path, ledger: Ledger, wrong: dict[str, Any], words: str
) -> None:
    write(tmp_path)
    with pytest.raises(InvalidParameter, match=words):
        schedule(tmp_path, ledger, **wrong)
    assert ledger.position("visits") == 1


def test_due_lists_are_drawn_and_others_held(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path)
    weekly = schedule(tmp_path, ledger)
    assert weekly.run("2026-01-11").release is None
    shown = [weekly.run(f"2026-{day}") for day in ("01-12", "01-19", "01-26", "02-02")]
    assert [(one.period, one.drawn_for, one.held) for one in shown] == [
        (1, 1, False),
        (2, 2, False),
        (3, 2, True),
        (4, 4, False),
    ]
    assert shown[0].release is not None
    assert set(shown[0].release.items) == {"w0"}
    assert shown[1].release is not None
    assert set(shown[1].release.items) == {"w0", "w1"}
    assert "the list of period 2, with rows until 2026-01-18" in shown[2].title
    assert shown[2].release == shown[1].release
    assert weekly.shown(3) == shown[2]


def test_a_receipt_says_what_all_lists_have_and_who_paid(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path)
    weekly = schedule(tmp_path, ledger)
    shown = weekly.run("2026-01-12").release
    assert shown is not None
    receipt = dict(shown.receipt)
    assert receipt["Budget"] == (
        "paid in advance from dataset 'visits', with all lists of schedule 'weekly'. Showing this "
        "list again costs nothing."
    )
    assert shown.epsilon < weekly.plan.epsilon  # its own part
    together = f"epsilon = {rounded_up(weekly.plan.epsilon)} and delta = 0.0001"
    assert (
        f"for this one list. All 3 lists of schedule 'weekly' together have {together}; answers "
        "outside of the schedule add to that." in receipt["Guarantee"]
    )
    assert "where day >= 2026-01-05 and day < 2026-01-12, by number of distinct" in shown.title
    one = schedule(tmp_path, ledger, until="2026-01-11", name="once").run("2026-01-12")
    assert one.release is not None
    assert "for the one list of schedule 'once'. Each" in dict(one.release.receipt)["Guarantee"]
    assert "The one list of this schedule, shown as often as wanted, is (" in one.together


def test_one_charge_at_the_start_pays_for_all(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path)
    weekly = schedule(tmp_path, ledger)
    spent = ledger.account("visits").spent
    assert spent["rho"] > 0
    weekly.run("2026-02-02")
    again = schedule(tmp_path, ledger, start=None)
    again.run("2026-02-09")
    assert ledger.account("visits").spent == spent
    assert weekly.plan.epsilon <= 4
    single = planned(weekly.terms.question().numbers, weekly.terms.question())
    assert weekly.plan.each.epsilon < single.each.epsilon
    assert not ledger.check().faults


def test_the_price_of_a_list_is_a_promise(tmp_path: Path, ledger: Ledger) -> None:
    """A schedule's plan is made anew whenever it goes on, by a later version, too."""
    write(tmp_path)
    plan = schedule(tmp_path, ledger, k=2, epsilon=1, delta=1e-6).plan
    assert (plan.lists, f"{plan.epsilon:.6f}") == (3, "0.984473")


def test_windows_count_their_periods_alone(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path)
    two = schedule(tmp_path, ledger, kind="window", window=2)
    assert two.terms.due == (2, 4)
    assert two.run("2026-01-18").release is None
    last = two.run("2026-02-02")
    assert last.release is not None
    assert set(last.release.items) == {"w2", "w3"}


def test_missed_periods_are_drawn_late_with_their_own_rows(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path)
    weekly = schedule(tmp_path, ledger)
    weekly.run("2026-02-20")
    release = weekly.shown(1).release
    assert release is not None
    assert set(release.items) == {"w0"}


def test_other_terms_under_the_name_are_refused(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path)
    schedule(tmp_path, ledger)
    with pytest.raises(InvalidParameter, match="was begun with other terms"):
        schedule(tmp_path, ledger, k=3)


def test_a_schedule_that_does_not_fit_is_refused_whole(tmp_path: Path, ledger: Ledger) -> None:
    write(tmp_path)
    before = ledger.account("visits").spent
    with pytest.raises(BudgetExceeded):
        schedule(tmp_path, ledger, epsilon=30)
    ledger.open_budget(
        "small", Metered.of(epsilon=1, delta=1e-6, queries=5, picks=9), person="user"
    )
    with pytest.raises(InvalidParameter, match="metered budget pays"):
        schedule(tmp_path, ledger, dataset="small")
    assert ledger.account("visits").spent == before
    assert Publications(ledger).names("visits") == []


def test_it_resumes_from_the_ledger_alone(tmp_path: Path, ledger: Ledger) -> None:
    path = write(tmp_path)
    where = [("place", "in", ["w0", "w1"]), ("day", "<", datetime.date(2026, 1, 17)), "user != 'u'"]
    first = schedule(tmp_path, ledger, where=where, max_items=3)
    found = Schedule.resume(str(path), ledger=ledger, dataset="visits", name="weekly")
    assert found.terms == first.terms
    assert found.terms.question(2).fingerprint() == first.terms.question(2).fingerprint()
    assert found.run("2026-01-19").release is not None
    with pytest.raises(InvalidParameter, match="has no schedule 'other'"):
        Schedule.resume(str(path), ledger=ledger, dataset="visits", name="other")


def test_a_failure_that_rows_may_cause_is_not_drawn_again(tmp_path: Path, ledger: Ledger) -> None:
    path = write(tmp_path)
    weekly = schedule(tmp_path, ledger)
    whole = path.read_bytes()
    path.write_bytes(whole + b'"no end\n')
    with pytest.raises(SourceError):
        weekly.run("2026-01-12")
    path.write_bytes(whole)
    found = schedule(tmp_path, ledger).run("2026-01-12")
    assert found.release is None
    assert found.cut_short == (1,)
    assert progress(ledger, "visits", "weekly")["lists"][0]["state"] == "failed"
    write_off_list(ledger, "visits", "weekly", 1)
    assert schedule(tmp_path, ledger).run("2026-01-12").release is not None
    with pytest.raises(InvalidParameter, match="has its answer"):
        write_off_list(ledger, "visits", "weekly", 1)
    assert not ledger.check().faults


def test_a_missing_file_is_tried_again(tmp_path: Path, ledger: Ledger) -> None:
    path = write(tmp_path)
    weekly = schedule(tmp_path, ledger)
    path.rename(tmp_path / "away.csv")
    with pytest.raises(SourceError):
        weekly.run("2026-01-12")
    (tmp_path / "away.csv").rename(path)
    assert weekly.run("2026-01-12").release is not None


@pytest.mark.parametrize("step", scheduled.STEPS)
def test_killed_at_any_step_nothing_is_spent_twice(
    tmp_path: Path, ledger: Ledger, step: str
) -> None:
    """Nothing is shown that was not stored, and what was stored is what is shown."""
    write(tmp_path)
    words = [sys.executable, scheduled.__file__, str(tmp_path), step]
    killed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    assert killed.stdout == ""
    books = Publications(ledger)
    publication = books.find("visits", "weekly")
    state = {} if publication is None else books.periods(publication)
    spent = ledger.account("visits").spent
    told: Any = schedule(tmp_path, ledger).run("2026-01-12").to_dict()
    if step != "opening":
        assert ledger.account("visits").spent == spent
    assert len([e for e in ledger.history("visits") if e.event == "reserved"]) == 1
    if step in ("begun", "drawn"):
        assert told["release"] is None
        assert told["cut_short"] == [1]
    else:
        assert list(told["release"]["items"]) == ["w0"]
    if step in ("stored", "shown"):
        assert told["release"] == schedule(tmp_path, ledger).shown(1).to_dict()["release"]
        assert state[1].answer is not None
    assert not ledger.check().faults


def test_a_tampered_list_is_found(tmp_path: Path, ledger: Ledger) -> None:
    from sqlalchemy import text

    write(tmp_path)
    schedule(tmp_path, ledger).run("2026-01-12")
    for statement in (
        "UPDATE periods SET answer = '{}'",
        "UPDATE publications SET name = 'x'",
        "DELETE FROM periods",
    ):
        with ledger._store.writing() as connection:
            connection.execute(text(statement))
        assert ledger.check().faults


def test_powers_of_two_and_windows() -> None:
    assert due_periods("cumulative", 1, 1) == (1,)
    assert due_periods("cumulative", 64, 1)[-1] == 64
    assert due_periods("window", 12, 4) == (4, 8, 12)
