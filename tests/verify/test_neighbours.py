"""Neighbours are what persons can do, checked against persons."""

from itertools import combinations, product

import pytest

from topsecret.errors import InvalidParameter, TooLarge
from topsecret.verify.neighbours import Cube, Neighbourhood, neighbours


def pairs_of(cube: Cube, neighbourhood: Neighbourhood) -> set[tuple[tuple[int, ...], ...]]:
    counts = [tuple(row) for row in cube.counts().tolist()]
    first, second = neighbours(cube, neighbourhood)
    found = [(counts[i], counts[j]) for i, j in zip(first, second, strict=True)]
    assert len(set(found)) == len(found)
    return set(found)


def person_by_person(adjacency: str, max_items: int | None) -> set[tuple[tuple[int, ...], ...]]:
    """All datasets of at most four persons over two items with counts up to 2, changed by one."""
    limit = 2 if max_items is None else max_items
    baskets = [
        basket for size in range(limit + 1) for basket in combinations(range(2), size)
    ]  # an empty basket is a person without items

    def counts(persons: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        return tuple(sum(item in basket for basket in persons) for item in range(2))

    found = set()
    for number in range(5):
        for persons in product(baskets, repeat=number):
            if adjacency == "replace":
                others = [(*persons[1:], basket) for basket in baskets] if persons else []
            else:
                others = [(*persons, basket) for basket in baskets]
            for changed in others:
                here, there = counts(persons), counts(changed)
                if here != there and max(*here, *there) <= 2:
                    found |= {(here, there), (there, here)}
    return found


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("max_items", [1, 2, None])
def test_neighbours_are_what_one_person_can_change(adjacency: str, max_items: int | None) -> None:
    cube, neighbourhood = Cube(2, 2), Neighbourhood(adjacency, max_items)
    assert pairs_of(cube, neighbourhood) == person_by_person(adjacency, max_items)


def test_every_pair_is_there_in_both_directions() -> None:
    found = pairs_of(Cube(3, 2), Neighbourhood("replace", 1))
    assert found == {(there, here) for here, there in found}


def test_a_larger_sensitivity_moves_scores_further() -> None:
    found = pairs_of(Cube(1, 4), Neighbourhood(sensitivity=2))
    assert {abs(here[0] - there[0]) for here, there in found} == {1, 2}


def test_four_items_with_counts_up_to_four_are_625_histograms() -> None:
    first, _ = neighbours(Cube(4, 4), Neighbourhood())
    assert (len(Cube(4, 4)), len(first)) == (625, 2 * (9**4 - 5**4))


def test_an_unknown_relation_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="must be 'add-remove' or 'replace'"):
        Neighbourhood("swap")


def test_a_cube_that_would_not_finish_is_refused() -> None:
    with pytest.raises(TooLarge, match="lower one of them"):
        Cube(10, 4)
    with pytest.raises(InvalidParameter, match="must both be at least 1"):
        Cube(0, 4)
