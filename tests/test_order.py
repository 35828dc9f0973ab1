"""The canonical order is one order, whatever the items are."""

import math
from itertools import permutations

import pytest

from topsecret import Histogram
from topsecret.exact.ordering import as_a_set
from topsecret.mechanisms import StableTopK

NAN = math.nan


@pytest.mark.parametrize(
    "items",
    [
        (1.0, NAN, 2.0, "a"),
        ((1, NAN), (1, 2.0), (2, 0.0)),
        (frozenset("ab"), frozenset("b"), frozenset()),
        (True, 2, 0.5, -math.inf, math.inf),
        (b"a", "a", None, ("a",)),
    ],
)
def test_a_set_looks_the_same_whatever_order_it_came_in(items: tuple[object, ...]) -> None:
    shown = {repr(as_a_set(order)) for order in permutations(items)}  # type: ignore[arg-type]
    assert len(shown) == 1


def test_an_unordered_answer_with_a_nan_does_not_tell_the_ranking() -> None:
    mechanism = StableTopK(3, 0.5, 0.01)
    laws = [
        {repr(outcome): chance for outcome, chance in mechanism.distribution(counts).items()}
        for counts in (
            Histogram.of({1.0: 30, NAN: 30, 2.0: 31}),
            Histogram.of({1.0: 30, NAN: 30, 2.0: 30}),
        )
    ]
    likeliest = [max(law, key=law.__getitem__) for law in laws]
    assert likeliest[0] == likeliest[1]
