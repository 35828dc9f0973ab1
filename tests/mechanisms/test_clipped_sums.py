"""Sums of which one person's part has a bounded length: law against claim, and wrong versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from topsecret import Histogram
from topsecret.accounting import Loss, failure, gaussian
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.exact.rounding import exact
from topsecret.mechanisms import ClippedSums
from topsecret.mechanisms.chosen_bound_law import amounts_of_rows
from topsecret.mechanisms.clipped_sums_law import BinnedSums, scaled
from topsecret.verify import check_privacy
from topsecret.verify.sampler import check_sampler

SIZE: dict[str, Any] = {"items": 3, "max_count": 2, "tall": 4}
RELEASE = ClippedSums(4, 2.0, 0.1, 2, 3, 3)


@pytest.mark.parametrize("case", ClippedSums.verification_cases(), ids=range(6))
def test_it_keeps_its_claim(case: BinnedSums) -> None:
    check_privacy(case, **SIZE).require()


def test_the_draw_follows_the_law() -> None:
    persons = {f"{n} {i}": [*n] for n, m in {"a": 5, "b": 3, "abc": 4}.items() for i in range(m)}
    case = ClippedSums(4, 4.0, 0.3, 3, 4, 3).binned(9, 14)
    check_sampler(case, case.counted(persons, None), 600).require()


def test_it_spends_its_budget_and_no_more() -> None:
    loss = ClippedSums(10, 1.0, 1e-6, 50, 100, 100).loss
    assert 0.999 < loss.epsilon(1e-6) <= 1
    assert Fraction(99, 1000) * exact(1e-6) < loss.failures <= exact(1e-6) / 10
    public = ClippedSums(10, 1.0, 1e-6, 50, 100, 100, "public")
    assert public.loss.failures == 0
    assert public.threshold is None


def test_nobody_adds_more_than_the_bounds() -> None:
    for amounts in ({"a": 9, "b": 9, "c": 9, "d": 9}, {"a": 3, "b": 1}, {"a": 1, "b": 2, "c": 2}):
        part = scaled(amounts, 3, 4, 3)
        assert len(part) <= 3
        assert max(part.values()) <= 3
        assert sum(n * n for n in part.values()) <= 16


def test_the_best_are_named_in_order() -> None:
    histogram = Histogram.of({"a": 10_000, "b": 30_000, "c": 1})
    release = ClippedSums(2, 1.0, 1e-6, 5, 10, 100)
    assert release.select(histogram).items == ("b", "a")
    longer = replace(release, k=3).select(histogram)
    assert (longer.items, longer.complete) == (("b", "a"), False)
    with pytest.raises(DomainRequired):
        replace(release, domain="public").select(histogram)


# --- wrong versions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Believed(BinnedSums):
    """Amounts are clipped one by one, and their length is believed."""

    def counted(
        self, holdings: Mapping[str, Sequence[str]], domain: Sequence[str] | None
    ) -> Histogram:
        sums: dict[str, int] = {}
        for amounts in amounts_of_rows(holdings).values():
            for item, amount in amounts.items():
                sums[item] = sums.get(item, 0) + min(amount, self.release.most)
        return Histogram.of(sums)


class Unsafe(ClippedSums):
    """A threshold that names labels of one person far too often for what is claimed."""

    @property
    def threshold(self) -> Fraction | None:
        return Fraction(self.most)


class Unfailing(ClippedSums):
    """The threshold's failure is not charged."""

    @property
    def loss(self) -> Loss:
        return gaussian(Fraction(self.total) ** 2 / self.sigma**2)


class OneLabel(ClippedSums):
    """The failure of one label at the clip, charged for all that a person has."""

    @property
    def loss(self) -> Loss:
        own = replace(self.own, items=1)  # type: ignore[type-var]  # an unknown domain
        return gaussian(Fraction(self.total) ** 2 / self.sigma**2) + failure(exact(own.chance))


class PerItem(ClippedSums):
    """Noise for one label, where a person has several."""

    @property
    def loss(self) -> Loss:
        right = super().loss
        return replace(right, mu_squared=Fraction(self.most) ** 2 / self.sigma**2)


@pytest.mark.parametrize("wrong", [Unsafe, Unfailing, OneLabel, PerItem])
def test_a_wrong_version_is_caught(wrong: type[ClippedSums]) -> None:
    planted = wrong(4, 3.0, 0.3, 2, 4, 3)
    assert check_privacy(planted.binned(5, 9), **SIZE).broken is not None


def test_a_length_that_is_believed_is_caught() -> None:
    assert check_privacy(Believed(ClippedSums(4, 3.0, 0.3, 4, 4, 1), (5,)), **SIZE).broken


@pytest.mark.parametrize("name", ["k", "most", "total", "items"])
def test_parameters_are_whole(name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{name}=0"):
        replace(RELEASE, **{name: 0})
    with pytest.raises(InvalidParameter, match="most=5 must be at most total=3"):
        replace(RELEASE, most=5)
