"""The histogram keeps its secret and hands out the right views of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.noise.bits import SystemBits

NEIGHBOURS = [({"a": 5, "b": 3}, {"a": 6, "b": 3}), ({}, {"z": 1}), ({"a": 1}, {"a": 1, "q": 1})]


@pytest.mark.parametrize(("one", "other"), NEIGHBOURS)
@pytest.mark.parametrize("domain", [None, ["a", "b", "q", "z"]])
def test_repr_is_the_same_on_neighbours(one, other, domain):
    left, right = Histogram.of(one, domain), Histogram.of(other, domain)
    assert repr(left) == repr(right) == str(left)
    assert repr(Histogram.from_counts([1, 2])) == repr(Histogram.from_counts([2, 2]))


@pytest.mark.parametrize(("one", "other"), NEIGHBOURS)
def test_errors_are_the_same_on_neighbours(one, other):
    messages = set()
    for counts in (one, other):
        with pytest.raises(DomainRequired) as caught:
            Histogram.of(counts).require_domain("GumbelTopK", 1)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_what_cannot_be_counts_is_rejected():
    with pytest.raises(InvalidParameter, match="scores must be finite"):
        Histogram.from_counts(np.array([1.0, np.nan]))
    with pytest.raises(InvalidParameter, match="whole numbers"):
        Histogram.of({"a": 1.5})  # type: ignore[dict-item]
    with pytest.raises(InvalidParameter, match="2 dimensions"):
        Histogram.from_counts(np.zeros((2, 2)))
    with pytest.raises(InvalidParameter, match="integers or floats"):
        Histogram.from_counts(np.array(["a"]))
    with pytest.raises(InvalidParameter, match="name an item twice"):
        Histogram.of({}, domain=["a", "a"])


def test_items_outside_the_domain_are_left_out():
    h = Histogram.of({"a": 5, "x": 9}, domain=["a", "b"])
    assert h.scores() == [("a", 5), ("b", 0)]
    assert h.domain_size == 2


def test_ranked_breaks_ties_by_the_items_not_by_the_input():
    one = Histogram.of({"b": 2, "a": 2, "c": 3, "d": 0})
    other = Histogram.of({"d": 0, "c": 3, "a": 2, "b": 2})
    assert one.ranked(2) == other.ranked(2) == [("c", 3), ("a", 2)]
    assert one.ranked(9) == [("c", 3), ("a", 2), ("b", 2)]
    assert Histogram.from_counts([2, 0, 3, 2]).ranked(3) == [(2, 3), (0, 2), (3, 2)]


@given(st.dictionaries(st.integers(0, 40), st.integers(0, 6), max_size=30), st.integers(1, 35))
def test_named_and_array_tables_rank_alike(counts, size):
    array = [counts.get(i, 0) for i in range(41)]
    assert Histogram.of(counts).ranked(size) == Histogram.from_counts(array).ranked(size)


def histograms_of(array):
    counts = dict(enumerate(array))
    yield Histogram.from_counts(np.array(array))
    yield Histogram.of(counts, domain=range(len(array)))
    yield Histogram.of({i: c for i, c in counts.items() if c}, domain=range(len(array)))
    yield Histogram.of({i: c for i, c in counts.items() if c}, domain=list(range(len(array))))
    yield Histogram.from_counts(np.array(array, dtype=object))


@given(st.lists(st.integers(-3, 2**63), min_size=1, max_size=40))
def test_naming_all_groups_names_every_item_with_its_count(array):
    for histogram in histograms_of(array):
        field = histogram.field()
        groups = [g for g in range(len(field.scores)) for _ in range(field.size(g))]
        names = histogram.names(groups, SystemBits())
        assert sorted(names) == list(range(len(array)))
        assert all(array[name] == field.score(g) for name, g in zip(names, groups, strict=True))


@pytest.mark.parametrize("size", [12, 5000])
def test_names_are_uniform_within_a_group(size):
    """Alarm rate below 10⁻⁸: each of four members of one group, seven deviations."""
    array = np.zeros(size, dtype=np.int64)
    array[-4:] = 7
    for histogram in histograms_of(array.tolist()):
        field = histogram.field()
        group = int(np.argmax(field.scores))
        seen = Counter(histogram.names([group], SystemBits())[0] for _ in range(4000))
        assert set(seen) == set(range(size - 4, size))
        assert all(abs(count - 1000) < 200 for count in seen.values())


def test_lists_of_large_integers_stay_exact():
    for array in ([2**53 + 1, 2**63], [-1, 2**63], [2**53 + 1, 2**53]):
        assert [score for _, score in Histogram.from_counts(array).scores()] == array


def test_wide_counts_are_grouped_too():
    array = np.concatenate([np.arange(100_000) % 50, [2**40, 2**40, 2**62]])
    field = Histogram.from_counts(array).field()
    assert sum(field.sizes.tolist()) == len(array)
    assert field.scores.tolist() == [*range(50), 2**40, 2**62]
    names = Histogram.from_counts(array).names([50, 51, 50, 3], SystemBits())
    assert set(names[:3]) == {100_000, 100_001, 100_002}
    assert array[names[3]] == 3


def test_a_domain_of_a_quintillion():
    histogram = Histogram.of({5: 3, 10**17: 2}, domain=range(10**18))
    field = histogram.field()
    zero = field.scores.tolist().index(0)
    assert field.size(zero) == 10**18 - 2
    names = histogram.names([zero] * 1000, SystemBits())
    assert len(set(names)) == 1000
    assert not {5, 10**17} & set(names)


def test_leading_rows_are_checked():
    histogram = Histogram.leading([("a", 3), ("b", 3), ("c", 1)], limit=3)
    assert histogram.ranked(2) == [("a", 3), ("b", 3)]
    with pytest.raises(InvalidParameter, match="ask the source for k_bar \\+ 1"):
        histogram.ranked(4)
    with pytest.raises(InvalidParameter, match="best first"):
        Histogram.leading([("a", 1), ("b", 3)])
    with pytest.raises(InvalidParameter, match="each item once"):
        Histogram.leading([("a", 1), ("a", 1)])
