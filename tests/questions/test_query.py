import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from topsecret import top_k
from topsecret.errors import InvalidParameter, SourceError
from topsecret.sources import CountQuery, LeadingCounts


class Untouchable:
    """A source that must not be asked."""

    name = "untouchable"

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        raise AssertionError("the source was read before the parameters were checked")


class Fixed:
    """A source with fixed counts that remembers the question."""

    name = "fixed"

    def __init__(self, *counts: tuple[str, int]) -> None:
        self.counts = list(counts)
        self.asked: list[CountQuery] = []

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        self.asked.append(query)
        return self.counts[: query.rows]


def ask(source: object, **changes: object) -> object:
    arguments: dict[str, object] = {"item": "place", "person": "user", "k": 2, "epsilon": 1.0}
    return top_k(source, **(arguments | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k=0 must be at least 1; ask for one item or more"),
        ({"k": -3}, "k=-3 must be at least 1; ask for one item or more"),
        ({"k": 2.0}, "k=2.0 must be a whole number; write k=10"),
        ({"k": True}, "k=True must be a whole number; write k=10"),
        ({"k": 10**12}, "k=1000000000000 must be at most 50000; ask for fewer items"),
        ({"k_bar": 1}, "k_bar=1 must be at least k=2; raise k_bar or lower k"),
        ({"k_bar": 10**7}, "k_bar=10000000 must be at most 1000000; lower k_bar"),
        ({"epsilon": 0}, "epsilon=0 must be above 0; 1 is a common choice"),
        ({"epsilon": -1}, "epsilon=-1 must be above 0; 1 is a common choice"),
        ({"epsilon": float("nan")}, "epsilon=nan must be a finite number; write epsilon=0.5"),
        ({"epsilon": float("inf")}, "epsilon=inf must be a finite number; write epsilon=0.5"),
        (
            {"epsilon": 1e-320},
            "epsilon=1e-320 is too small to be divided among k=2 picks; raise epsilon or lower k",
        ),
        ({"epsilon": "1"}, "epsilon='1' must be a number; write epsilon=0.5"),
        (
            {"delta": -1e-9},
            "delta=-1e-09 must be at least 0 and below 1; "
            "1e-6 is the default, well below one over the number of people",
        ),
        (
            {"delta": 1},
            "delta=1 must be at least 0 and below 1; "
            "1e-6 is the default, well below one over the number of people",
        ),
        ({"delta": float("nan")}, "delta=nan must be a finite number; write delta=1e-6"),
        (
            {"mechanism": "guess"},
            "mechanism='guess' must be one of: auto, tested, limited-domain, "
            "limited-domain-laplace, optimal-threshold, fixed-threshold, top-stable, weighted, "
            "tested-or-weighted, stable-fixed-k, stable, pruned, gumbel, permute-and-flip, "
            "oneshot-exponential, oneshot-laplace, canonical-set, oneshot-private-length",
        ),
        (
            {"mechanism": "gumbel"},
            "mechanism='gumbel' names any item of a public domain, and none was given; "
            "give the domain, or use mechanism='tested', which names observed items only",
        ),
        (
            {"mechanism": "limited-domain-laplace"},
            "mechanism='limited-domain-laplace' needs a cap on the items of one person; "
            "pass max_items=5, say",
        ),
        ({"mechanism": "stable"}, "mechanism='stable' chooses k itself; pass k='auto'"),
        (
            {"k": "auto", "mechanism": "tested"},
            "mechanism='tested' needs a number of items; pass k=10, say, "
            "or mechanism='stable', which chooses it",
        ),
        (
            {"k_bar": 2, "mechanism": "tested"},
            "k_bar=2 must be at least 3 for k=2 with mechanism='tested'; raise k_bar or lower k",
        ),
        ({"k": "many"}, "k='many' must be a whole number, 'auto' or 'all'; write k=10"),
        ({"k": "auto", "k_bar": 0}, "k_bar=0 must be at least 1; raise k_bar"),
        ({"item": ""}, "item='' must be the name of a column; pass item='...'"),
        ({"person": None}, "person=None must be the name of a column; pass person='...'"),
        (
            {"item": "user"},
            "item='user' and person='user' must be two different columns; "
            "person names who is protected, item what is counted",
        ),
    ],
)
def test_parameters_are_checked_before_the_source_is_read(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        ask(Untouchable(), **changes)
    assert str(caught.value) == message


def test_a_source_is_a_path_or_a_source() -> None:
    with pytest.raises(InvalidParameter) as caught:
        ask(42)
    assert str(caught.value) == (
        "source must be a file, a database's URL, an SQLAlchemy engine, a DuckDB connection, or a "
        "data frame of pandas, polars, pyarrow, ibis or Spark; found a int"
    )
    with pytest.raises(SourceError, match=r"none\.csv does not exist"):
        ask("none.csv")


def test_an_answer_end_to_end(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    rows = [f"u{n},{place}" for place, n_ in (("park", 900), ("pier", 600)) for n in range(n_)]
    path.write_text("\n".join(["user,place", *rows, *rows]) + "\n")
    release = top_k(path, item="place", person="user", k=2, epsilon=1.0, delta=1e-6)
    # The gaps of 300 and more are over 50 times the noise's scale.
    assert release.items == ("park", "pier")
    assert release.complete
    assert 0.9 < release.epsilon <= 1.0
    assert release.delta == 1e-6
    assert (release.source, release.item, release.unit.person) == ("events.csv", "place", "user")


def test_one_row_more_than_k_bar_is_asked_for() -> None:
    source = Fixed()
    ask(source)
    ask(source, k_bar=7)
    assert [query.rows for query in source.asked] == [2 * 20 + 1, 8]


@pytest.mark.parametrize("counts", [(), (("park", 1),), (("park", 1), ("pier", 1))])
def test_rare_items_are_not_named(counts: tuple[tuple[str, int], ...]) -> None:
    release = ask(Fixed(*counts), delta=1e-9)
    assert release.items == ()  # type: ignore[attr-defined]
    assert not release.complete  # type: ignore[attr-defined]


@pytest.mark.parametrize("epsilon", [0.1, 1, np.float64(0.3), Fraction(1, 3), 5.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-12, Fraction(1, 10**7)])
def test_the_reported_budget_is_within_the_asked_one(epsilon: float, delta: float) -> None:
    release = top_k(Fixed(), item="p", person="u", k=3, epsilon=epsilon, delta=delta)
    assert 0.8 * float(epsilon) < release.epsilon <= Fraction(epsilon)
    assert 0 < release.delta <= Fraction(delta)


def test_the_receipt_does_not_depend_on_the_counts() -> None:
    """Neighbouring inputs give the same receipt, whatever was selected."""

    def public(counts: tuple[tuple[str, int], ...]) -> dict[str, object]:
        record = ask(Fixed(*counts), k_bar=2).to_dict()  # type: ignore[attr-defined]
        del record["items"], record["complete"], record["chosen"], record["time"]
        record["receipt"] = {
            label: text
            for label, text in record["receipt"].items()
            if label not in {"The list", "Why empty", "Made"}  # by the items that are released
        }
        return record

    before = (("park", 5000), ("pier", 4000), ("pond", 3000))
    after = (("park", 5001), ("pier", 4001), ("pond", 3001))
    assert public(before) == public(after) == public(())


def test_auto_follows_the_public_rule() -> None:
    few, many = ask(Fixed()), ask(Fixed(), k=10)
    assert few.mechanism == "limited-domain"  # type: ignore[attr-defined]
    assert many.mechanism == "tested"  # type: ignore[attr-defined]


CLEAR = tuple((f"place {n}", 9000 - n) for n in range(4))


@pytest.mark.parametrize(
    ("mechanism", "ordered"),
    [
        ("tested", True),
        ("limited-domain", True),
        ("optimal-threshold", True),
        ("fixed-threshold", False),
        ("top-stable", False),
        ("stable-fixed-k", False),
    ],
)
def test_every_mechanism_answers(mechanism: str, ordered: bool) -> None:
    release = ask(Fixed(*CLEAR), k=4, mechanism=mechanism)
    assert release.complete  # type: ignore[attr-defined]
    assert set(release.items) == {name for name, _ in CLEAR}  # type: ignore[attr-defined]
    assert release.ordered is ordered  # type: ignore[attr-defined]
    assert release.epsilon <= 1  # type: ignore[attr-defined]
    assert release.mechanism == mechanism  # type: ignore[attr-defined]


def test_k_auto_is_a_set_of_as_many_as_stand_out() -> None:
    release = ask(Fixed(*CLEAR, ("pond", 3)), k="auto")
    assert (release.mechanism, release.k) == ("stable", "auto")  # type: ignore[attr-defined]
    assert set(release.items) == {name for name, _ in CLEAR}  # type: ignore[attr-defined]
    assert release.title.startswith("Most common values of 'place'")  # type: ignore[attr-defined]
    assert (
        "holds 4 items, after which the counts drop. Where to cut was chosen with noise, and the "
        "drop there passed a test with noise." in " ".join(str(release).split())
    )
    nothing = ask(Fixed(("pond", 1)), k="auto", delta=1e-9)
    assert nothing.items == ()  # type: ignore[attr-defined]
    assert not nothing.complete  # type: ignore[attr-defined]
    assert nothing.ending == (  # type: ignore[attr-defined]
        "is empty. No drop in the counts was wide enough to be shown safely, or noise made it look "
        "so."
    )


def test_the_receipt_of_a_tested_list_explains_nothing_and_the_length() -> None:
    # Six clear items where ten are asked for: a list of ten cannot pass, one of up to six can.
    counts = [(f"place {n}", 9000 - n) for n in range(6)]
    release = ask(Fixed(*counts), k=10, mechanism="tested")
    assert release.chosen <= 6  # type: ignore[attr-defined]
    assert not release.complete  # type: ignore[attr-defined]
    assert (
        f"is shorter than asked for: of 10 items a length of {release.chosen} was chosen with noise"  # type: ignore[attr-defined]
        in release.ending  # type: ignore[attr-defined]
    )
    empty = ask(Fixed(), k=10, mechanism="tested", delta=1e-9)
    assert empty.items == ()  # type: ignore[attr-defined]
    assert "neither it nor a shorter part of it passed the test" in empty.ending  # type: ignore[attr-defined]
    assert "ask for fewer items, spend more epsilon" in empty.ending  # type: ignore[attr-defined]


def test_a_path_may_be_a_string_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("user,place\n")
    assert ask(path).source == ask(os.fspath(path)).source == "events.csv"  # type: ignore[attr-defined]
