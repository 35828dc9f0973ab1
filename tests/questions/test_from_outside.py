"""Mechanisms and sources that the package does not know: what they say, and what is believed."""

from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from topsecret import calibration, mechanisms, top_k
from topsecret.calibration import Entry, unknown_domain
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.ledger import Flexible, Ledger, Metered
from topsecret.mechanisms import (
    ClippedSums,
    GumbelTopK,
    LaplaceRanking,
    LeadingRises,
    LimitedDomain,
    OneshotExponential,
)
from topsecret.sources import CountQuery, LeadingCounts, open_source
from topsecret.sources.sql.dialects import check_dialect

MINE = LimitedDomain(k=2, k_bar=10, epsilon_per_pick=0.2, delta=1e-7)
ASKED: dict[str, Any] = {"item": "place", "person": "user", "k": 2, "k_bar": 10, "epsilon": 1.0}


class Counted:
    """A source that ranks and nothing else."""

    name = "counted"
    read = 0

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        self.read += 1
        return [("park", 10_000), ("pier", 5_000)]


class Capping(Counted):
    does = frozenset({"max_items"})


def test_a_mechanism_may_be_an_object() -> None:
    release = top_k(Counted(), mechanism=MINE, **ASKED)
    assert (release.items, release.mechanism) == (("park", "pier"), "LimitedDomain")
    assert release.parameters["epsilon_per_pick"] == 0.2
    assert release.epsilon == MINE.loss.epsilon(1e-6) <= 1


def test_an_object_that_costs_more_than_the_budget_is_refused() -> None:
    source = Counted()
    with pytest.raises(InvalidParameter, match=r"epsilon=0.1 with .* cannot be met"):
        top_k(source, mechanism=MINE, **ASKED | {"epsilon": 0.1})
    assert source.read == 0


@pytest.mark.parametrize(
    ("mechanism", "changes", "message"),
    [
        (object(), {}, "must be a name, or an object that satisfies Mechanism; found a object"),
        (MINE, {"k": 1}, "k=1 must be the mechanism's own k=2; pass k=2"),
        (MINE, {"k_bar": 20}, "k_bar=20 must be the mechanism's own k_bar=10; pass k_bar=10"),
        # What its loss is proven for is not what a person can do here.
        (replace(MINE, max_items=1), {}, "people of at most 1 items; pass max_items=1"),
        (replace(MINE, adjacency="replace"), {}, "is for adjacency='replace'"),
        (
            GumbelTopK(k=2, scale=0, sensitivity=0),
            {},
            "by less than 1; build it with sensitivity=1",
        ),
        (GumbelTopK(k=2, scale=9, sensitivity=0.99), {}, "by less than 1"),
        (OneshotExponential(k=2, epsilon=1, sensitivity=0.5), {}, "by less than 1"),
        (LaplaceRanking(k=2, epsilon=1), {}, "is for adjacency='replace'"),
        (ClippedSums(2, 1.0, 1e-6, 1, 1, 1), {}, "only where all that one person adds is scaled"),
        (LeadingRises(2, MINE, 1.0), {}, "only where the people of two periods"),
    ],
)
def test_an_object_that_does_not_fit_is_refused(
    mechanism: Any, changes: dict[str, int], message: str
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        top_k(Counted(), mechanism=mechanism, **ASKED | changes)
    assert message in str(caught.value)


def test_what_each_mechanism_rests_on_is_known_to_the_check() -> None:
    """A field with a new name may bound what a person adds: judge it, or declare a precondition."""
    checked = {"k", "k_bar", "adjacency", "max_items", "sensitivity", "smallest", "fill"}
    counted_so = {"weights", "options", "bounds"}  # of other counts nothing is drawn
    harmless = {
        *("epsilon", "delta", "epsilon_per_pick", "epsilon_refine", "rho", "scale", "failure"),
        *("strict", "domain", "at_least", "lengths", "behind", "max_k_bar", "ranks", "closeness"),
        *("regulariser", "selection", "test", "quantile", "rank", "target", "handicap"),
    }
    for name in mechanisms.__all__:
        made = getattr(mechanisms, name)
        if is_dataclass(made) and hasattr(made, "select") and not hasattr(made, "precondition"):
            found = {field.name for field in fields(made)}
            assert found <= checked | counted_so | harmless, name


def test_an_object_for_capped_persons_fits_where_the_source_caps() -> None:
    capped = replace(MINE, max_items=2)
    assert top_k(Capping(), mechanism=capped, **ASKED, max_items=2).items == ("park", "pier")


def test_an_object_that_needs_a_domain_is_refused_before_a_row_is_read(tmp_path: Path) -> None:
    source = Counted()
    with pytest.raises(DomainRequired):
        top_k(source, mechanism=GumbelTopK(k=2, scale=10), **ASKED)
    assert source.read == 0


def test_an_object_is_paid_for_and_recognised(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("user,place\n" + "".join(f"u{n},park\n" for n in range(500)))
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("d", Flexible.of(epsilon=9, delta=1e-4), person="user")
    ledger.open_budget("m", Metered.of(epsilon=9, delta=1e-4, queries=2, picks=8), person="user")
    asked: dict[str, Any] = {**ASKED, "ledger": ledger, "dataset": "d"}
    other = LimitedDomain(k=2, k_bar=10, epsilon_per_pick=0.1, delta=1e-7)
    charges = [top_k(path, mechanism=one, **asked).charge for one in (MINE, MINE, other)]
    assert [charge is not None and charge.stored for charge in charges] == [False, True, False]
    with pytest.raises(InvalidParameter, match="needs a mechanism by its name"):
        top_k(path, mechanism=MINE, **asked | {"dataset": "m", "epsilon": None})
    ledger.close()


def test_a_source_that_cannot_cap_gets_no_receipt_that_says_so() -> None:
    with pytest.raises(InvalidParameter) as caught:
        top_k(Counted(), mechanism=MINE, **ASKED, max_items=2)
    assert str(caught.value) == (
        "counted does not declare that it applies max_items; leave max_items out, or let the "
        "source say does = {'max_items'}"
    )
    assert "Cap" in dict(top_k(Capping(), **ASKED, max_items=2).receipt)
    with pytest.raises(InvalidParameter, match="does not declare that it applies where"):
        top_k(Capping(), mechanism=MINE, **ASKED, where=[("a", "=", 1)])


@dataclass(frozen=True)
class Stranger:
    """What only another package knows."""

    counts: tuple[tuple[str, int], ...] = ()


def opened(source: object, table: object) -> Counted | None:
    return Counted() if isinstance(source, Stranger) else None


MY_ENTRY = Entry(unknown_domain.limited_domain)


def test_packages_register_mechanisms_and_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    def registered(*, group: str) -> EntryPoints:
        names = {"topsecret.mechanisms": "mine", "topsecret.sources": "strangers"}
        values = {"topsecret.mechanisms": "MY_ENTRY", "topsecret.sources": "opened"}
        value = f"{__name__}:{values[group]}"
        return EntryPoints([EntryPoint(names[group], value, group)])

    monkeypatch.setattr(calibration, "entry_points", registered)
    monkeypatch.setattr(open_source, "entry_points", registered)
    calibration._registered.cache_clear()
    open_source._registered.cache_clear()
    try:
        release = top_k(Stranger(), mechanism="mine", **ASKED)  # type: ignore[arg-type]
        assert release.items == ("park", "pier")
        with pytest.raises(InvalidParameter, match=r"oneshot-laplace.*, mine$"):
            top_k(Stranger(), mechanism="yours", **ASKED)  # type: ignore[arg-type]
    finally:
        calibration._registered.cache_clear()
        open_source._registered.cache_clear()


def test_an_engine_that_the_sql_is_not_written_for_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="dialect='oracle' must be one of: duckdb"):
        check_dialect("oracle")
