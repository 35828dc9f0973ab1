"""top_k with a ledger: what happens, in which order, and what stays when it goes wrong."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from topsecret import top_k
from topsecret.calibration import Question as Numbers
from topsecret.calibration import prepare_at
from topsecret.errors import (
    BudgetExceeded,
    DataIndependentFailure,
    InvalidParameter,
    SourceError,
    UnknownColumn,
)
from topsecret.exact.rounding import rounded_down
from topsecret.ledger import Flexible, Ledger, Metered
from topsecret.ledger.account import what_is_left
from topsecret.ledger.question_delta import usual_delta
from topsecret.mechanisms import LimitedDomain
from topsecret.questions.payment import price_of
from topsecret.questions.question import Keywords, Question
from topsecret.results.release import Release
from topsecret.sources import CountQuery, LeadingCounts

METERED = Metered.of(epsilon=2, delta=1e-6, queries=4, picks=20)
FLEXIBLE = Flexible.of(epsilon=1, delta=1e-6)
COUNTS: LeadingCounts = [("park", 900_000), ("pier", 600_000), (7, 300_000)]


class Acting:
    """A source that does something before it answers."""

    name = "acting"

    def __init__(self, act: Callable[[], object] = lambda: None, version: str = "1") -> None:
        self.act = act
        self.version = version
        self.read = 0

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        self.read += 1
        self.act()
        return COUNTS[: query.rows]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "ledger.db")
    opened.open_budget("m", METERED, person="user")
    opened.open_budget("f", FLEXIBLE, person="user")
    yield opened
    opened.close()


def ask(book: Ledger, source: Acting | None = None, **changes: object) -> Release:
    arguments: dict[str, object] = {"item": "place", "person": "user", "k": 5, "dataset": "m"}
    arguments |= {"ledger": book} | changes
    return top_k(source or Acting(), **arguments)  # type: ignore[arg-type]


def events(ledger: Ledger, dataset: str = "m") -> list[str]:
    return [entry.event for entry in ledger.history(dataset)]


def test_a_metered_query_costs_its_symbols(ledger: Ledger) -> None:
    release = ask(ledger)
    # The gaps are thousands of times the noise's scale: three items, then NOTHING.
    assert release.items == ("park", "pier", 7)
    assert not release.complete
    assert ledger.account("m").left == {"picks": 16, "queries": 3}
    assert release.parameters["epsilon_per_pick"] == METERED.price
    assert dict(release.receipt)["Budget"] == (
        "4 items and 1 query of dataset 'm' (entry 2); all answers from it together, this one "
        "included: epsilon at most 2, delta at most 1e-06."
    )
    assert release.epsilon <= 2
    assert release.delta == 1e-6


def test_the_reservation_is_durable_before_the_data_are_read(ledger: Ledger) -> None:
    seen: list[list[str]] = []
    ask(ledger, Acting(lambda: seen.append(events(Ledger(ledger.name)))))
    assert seen == [["opened", "reserved"]]
    assert events(ledger) == ["opened", "reserved", "settled"]


def test_a_flexible_query_brings_its_own_parameters(ledger: Ledger) -> None:
    asked = {"dataset": "f", "epsilon": 0.5, "delta": 1e-7, "mechanism": "limited-domain"}
    release = ask(ledger, **asked)  # type: ignore[arg-type]
    per_pick = Fraction(release.parameters["epsilon_per_pick"] or 0)
    spent = ledger.account("f").spent
    assert 4 * per_pick**2 / 8 <= spent["rho"] < 4 * per_pick**2 / 8 * Fraction(1_000_001, 10**6)
    assert spent["delta"] == Fraction(release.parameters["threshold_delta"] or 0)


def test_the_same_question_reads_nothing_and_costs_nothing(ledger: Ledger) -> None:
    source = Acting()
    first, again = ask(ledger, source), ask(ledger, source)
    assert source.read == 1
    assert again.items == first.items
    assert (again.time, again.parameters, again.unit) == (first.time, first.parameters, first.unit)
    assert dict(again.receipt)["Budget"] == (
        "nothing: this is the stored answer to the same question from dataset 'm' (entry 2)."
    )
    assert ledger.account("m").left == {"picks": 16, "queries": 3}


@pytest.mark.parametrize(
    "changes", [{"k": 4}, {"item": "city"}, {"k_bar": 50}, {"source": Acting(version="2")}]
)
def test_another_question_is_paid_for(ledger: Ledger, changes: dict[str, object]) -> None:
    ask(ledger)
    ask(ledger, **changes)  # type: ignore[arg-type]
    assert ledger.account("m").left["queries"] == 2


def test_a_query_that_does_not_fit_reads_nothing(ledger: Ledger) -> None:
    source = Acting()
    with pytest.raises(BudgetExceeded, match="has 20 items left for it; the largest k that fits i"):
        ask(ledger, source, k=21)
    with pytest.raises(BudgetExceeded) as caught:
        ask(ledger, source, dataset="f", epsilon=3, delta=1e-7)
    words = str(caught.value)
    largest = float(words.rpartition("the largest epsilon that fits is ")[2])
    assert source.read == 0
    with pytest.raises(BudgetExceeded):
        ask(ledger, source, dataset="f", epsilon=1.05 * largest, delta=1e-7)
    ask(ledger, source, dataset="f", epsilon=largest, delta=1e-7)


def test_a_refusal_speaks_of_epsilon_and_its_advice_has_the_delta_of_that_epsilon(
    ledger: Ledger,
) -> None:
    """A delta that is left out falls with epsilon; without that no epsilon would have fitted."""
    ask(ledger, dataset="f", k=3, epsilon=0.1, delta=0.9 * float(FLEXIBLE.failures))
    with pytest.raises(BudgetExceeded) as caught:
        ask(ledger, dataset="f", k=5, epsilon=1.9)
    words, _, largest = str(caught.value).partition("; the largest epsilon that fits is ")
    assert re.fullmatch(
        r"the query may need more epsilon and delta than dataset 'f' has left for it "
        r"\(for specialists: rho [\d.]+ and delta [\de.-]+ needed, rho [\d.]+ and delta [\de.-]+ "
        r"left\)",
        words,
    )
    ask(ledger, dataset="f", k=5, epsilon=float(largest))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 1.0}, "epsilon=1.0 must be left out: the dataset's budget is metered, with"),
        ({"dataset": "f"}, "epsilon is missing; 1 is a common choice"),
        ({"dataset": None}, "a ledger needs the name of a dataset; pass dataset='...'"),
        ({"ledger": None}, "dataset='m' needs a ledger; pass ledger=Ledger()"),
        (
            {"dataset": "none"},
            "dataset 'none' has no budget; open one with topsecret budget open "
            "none --person COLUMN --epsilon 1, say",
        ),
        ({"person": "row"}, "the budget of dataset 'm' protects people identified by 'user'"),
        ({"analyst": ""}, "analyst='' must be a printable text of 1 to 200 characters"),
    ],
)
def test_mistakes_cost_nothing(ledger: Ledger, changes: dict[str, object], message: str) -> None:
    source = Acting()
    with pytest.raises(InvalidParameter) as caught:
        ask(ledger, source, **changes)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)
    assert source.read == 0
    assert events(ledger) == ["opened"]


def failing(error: BaseException) -> Acting:
    def act() -> None:
        raise error

    return Acting(act)


@pytest.mark.parametrize(
    "error", [SourceError("broken"), UnknownColumn("c"), MemoryError(), KeyboardInterrupt()]
)
def test_a_failure_that_may_depend_on_the_data_stays_charged(
    ledger: Ledger, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        ask(ledger, failing(error))
    assert events(ledger) == ["opened", "reserved", "failed"]
    assert ledger.account("m").left == {"picks": 15, "queries": 3}


def test_a_failure_that_no_row_can_influence_is_free(ledger: Ledger) -> None:
    with pytest.raises(DataIndependentFailure):
        ask(ledger, failing(DataIndependentFailure("cannot connect")))
    assert events(ledger) == ["opened", "reserved", "released"]
    assert ledger.account("m").left == {"picks": 20, "queries": 4}


@pytest.mark.parametrize(
    ("name", "content", "event"),
    [
        ("e.csv", "user,town\nann,park\n", "released"),
        ("e.jsonl", '{"user": "ann", "place":\n', "failed"),
        ("e.csv", "user,place\nann,park,more\n", "failed"),
        ("e.csv", None, "released"),
    ],
)
def test_failures_of_files(
    ledger: Ledger, tmp_path: Path, name: str, content: str | None, event: str
) -> None:
    from topsecret.sources.engines.duckdb import FileSource

    path = tmp_path / name
    path.write_text(content or "user,place\n")
    source = FileSource(path)
    if content is None:
        path.unlink()
    with pytest.raises(SourceError):
        top_k(source, item="place", person="user", k=5, ledger=ledger, dataset="m")
    assert events(ledger)[-1] == event


def test_a_file_written_anew_is_another_version(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("user,place\n")
    for turn, queries in enumerate((3, 3, 2)):
        if turn == 2:
            os.utime(path, ns=(1, 1))
        top_k(path, item="place", person="user", k=1, ledger=ledger, dataset="m")
        assert ledger.account("m").left["queries"] == queries


def test_a_written_off_query_shows_nothing(ledger: Ledger) -> None:
    from topsecret.errors import InDoubt

    def write_off() -> None:
        (pending,) = ledger.account("m").pending
        ledger.write_off(pending.id)

    with pytest.raises(InDoubt, match="is written off by now; its answer is not shown"):
        ask(ledger, Acting(write_off))


def test_choosing_k_bar_costs_one_pick(ledger: Ledger) -> None:
    from topsecret import Histogram

    question = Numbers.of(k=3, epsilon=2, k_bar=40)
    price_and_share = float(METERED.price), float(METERED.query_delta)
    prepared = prepare_at("optimal-threshold", question, *price_and_share)
    mechanism, price = prepared.mechanism, price_of(prepared)
    assert METERED.worst(price) == {"picks": 4, "queries": 1}
    selection = mechanism.select(Histogram.of({"park": 10**6}))
    # k̄, park, NOTHING
    assert METERED.actual(price, len(selection.outcome)) == {"picks": 3, "queries": 1}


CRASH = """
import os, sys
sys.path[:0] = {folders!r}
from test_paid import Acting, ask
from topsecret.ledger import Ledger
ask(Ledger({name!r}), Acting(lambda: os.kill(os.getpid(), 9)), request_id="r")
print("shown")
"""


def test_a_crash_leaves_the_reservation_in_doubt(ledger: Ledger) -> None:
    from topsecret.errors import InDoubt

    here = Path(__file__).parent
    code = CRASH.format(folders=[str(here), str(here.parent)], name=ledger.name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-9, b"")
    account = ledger.account("m")
    (pending,) = account.pending
    assert account.left == {"picks": 15, "queries": 3}
    with pytest.raises(InDoubt, match=f"reservation {pending.id} of"):
        ask(ledger, request_id="r")
    ledger.write_off(pending.id)
    assert ask(ledger, request_id="r").items == ("park", "pier", 7)
    assert ledger.account("m").left == {"picks": 16, "queries": 3}


@pytest.mark.parametrize(
    ("mechanism", "k"),
    [
        ("tested", 5),
        ("limited-domain", 5),
        ("optimal-threshold", 5),
        ("fixed-threshold", 5),
        ("top-stable", 5),
        ("stable-fixed-k", 5),
        ("stable", "auto"),
    ],
)
def test_a_flexible_budget_pays_for_every_mechanism(
    ledger: Ledger, mechanism: str, k: object
) -> None:
    asked = {"dataset": "f", "k": k, "epsilon": 0.2, "delta": 1e-7, "mechanism": mechanism}
    first = ask(ledger, **asked)  # type: ignore[arg-type]
    again = ask(ledger, **asked)  # type: ignore[arg-type]
    assert re.match(
        r"([\d.]+%) of the budget of dataset 'f' \(entry 2\), not \1 of epsilon", str(first.charge)
    )
    assert str(again.charge).startswith("nothing: this is the stored answer")
    changed = {"receipt": None, "charge": None}
    assert again.to_dict() | changed == first.to_dict() | changed
    spent = ledger.account("f").spent
    assert 0 < spent["rho"] < FLEXIBLE.rho
    assert 0 < spent["delta"] <= Fraction(1e-7)
    assert ledger.check().faults == ()


def test_a_delta_that_is_left_out_follows_from_the_budget(ledger: Ledger) -> None:
    """Its part of the budget's delta, and the same question as ever."""
    first = ask(ledger, dataset="f", k=5, epsilon=0.2)
    assert 0 < first.delta <= usual_delta(FLEXIBLE, 0.2) < 1e-6
    again = ask(ledger, dataset="f", k=5, epsilon=0.2, delta=1e-6)
    assert again.charge is not None
    assert again.charge.stored  # paid for as the default; nobody pays twice for the same words
    assert ask(ledger, dataset="f", k=5, epsilon=0.2, delta=1e-8).charge != again.charge
    spent = ledger.account("f").spent
    assert spent["delta"] / FLEXIBLE.failures < spent["rho"] / FLEXIBLE.rho


def test_an_object_has_a_delta_of_its_own(ledger: Ledger) -> None:
    mine = LimitedDomain(k=3, k_bar=60, epsilon_per_pick=0.1, delta=4e-7)
    asked = {"dataset": "f", "k": 3, "epsilon": 0.5, "mechanism": mine}
    assert ask(ledger, **asked).charge is not None
    assert ask(ledger, **asked, delta=1e-6).charge.stored  # type: ignore[union-attr]


def test_a_share_without_a_delta_is_whole_until_it_is_used(ledger: Ledger) -> None:
    rho = FLEXIBLE.rho / 2
    left, limits = (
        {"rho": rho, "delta": Fraction(-1), "slack": Fraction(0)},
        {
            "rho": rho,
            "delta": Fraction(0),
            "slack": Fraction(0),
        },
    )
    assert what_is_left(left, limits).startswith("100% of the budget left (rho 0.0")
    assert what_is_left(left, limits).endswith(", delta 0 of 0)")


@pytest.mark.parametrize("used", [0, 1, 13, 37, 499, 998])
def test_the_part_that_is_left_follows_from_the_figures_beside_it(used: int) -> None:
    limits = {"rho": FLEXIBLE.rho / 3, "delta": Fraction(1, 2 * 10**6), "slack": Fraction(0)}
    left = {**limits, "rho": limits["rho"] * Fraction(999 - used, 999)}
    shown = what_is_left(left, limits)
    percent, rho, of, delta, of_delta = (float(one) for one in re.findall(r"\d[\d.e-]*", shown))
    assert (delta, of_delta) == (5e-7, 5e-7)
    assert percent == float(rounded_down(100 * rho / of, 3)) <= 100 * (999 - used) / 999


def test_no_budget_and_a_generous_one_have_the_usual_delta() -> None:
    asked: Keywords = {"item": "place", "person": "user", "k": 5, "epsilon": 1.5}
    generous = Flexible.of(epsilon=2, delta=1e-4)
    assert Question.of(**asked).numbers.delta == 1e-6
    assert Question.of(generous, **asked).numbers.delta == 1e-6
    assert Question.of(generous, **asked).fingerprint() == Question.of(**asked).fingerprint()
    assert Question.of(generous, **asked, delta=0.0).numbers.delta == 0  # said, not left out


def test_a_metered_budget_names_the_mechanisms_that_it_pays_for(ledger: Ledger) -> None:
    with pytest.raises(InvalidParameter) as caught:
        ask(ledger, mechanism="tested")
    assert str(caught.value) == (
        "mechanism='tested' must be 'limited-domain' or 'optimal-threshold': "
        "the dataset's budget is metered"
    )
    ask(ledger, mechanism="optimal-threshold")
    # k̄, three items and NOTHING
    assert ledger.account("m").left == {"picks": 15, "queries": 3}


def test_counts_caps_and_domains_are_paid_for_and_repeated(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("user,place\n" + "".join(f"u{n},park\n" for n in range(900)), "utf-8")
    question: dict[str, object] = {
        "item": "place",
        "person": "user",
        "k": 2,
        "epsilon": 0.2,
        "domain": ["park", "pier", "zoo"],
        "max_items": 2,
        "counts": True,
        "ledger": ledger,
        "dataset": "f",
    }
    first = top_k(path, **question)  # type: ignore[arg-type]
    left = ledger.account("f").left
    again = top_k(path, **question)  # type: ignore[arg-type]  # another salt, the same question
    assert (again.items, again.counts, again.half_width) == (
        first.items,
        first.counts,
        first.half_width,
    )
    assert ledger.account("f").left == left
    other = top_k(path, **question | {"domain": ["park", "pier"]})  # type: ignore[arg-type]
    assert other.domain == "a list of 2 items"
    assert ledger.account("f").left != left


def test_a_metered_budget_has_no_counts(ledger: Ledger) -> None:
    with pytest.raises(InvalidParameter, match="counts=True needs a budget that is not metered"):
        ask(ledger, counts=True)
