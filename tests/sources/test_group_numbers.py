"""Which of several groups a person stays in: the numbers of groups, and how fair the choice is."""

import hashlib
from itertools import combinations, pairwise

import pytest

from topsecret.errors import InvalidParameter
from topsecret.sources import CountQuery, GroupAssignment
from topsecret.sources.sql import groups

NAMES = tuple("abcdefghij")


def asked(names: tuple[str, ...], salt: bytes = bytes(16)) -> CountQuery:
    return CountQuery("p", "u", 9, home=GroupAssignment("g", names, names[0]), salt=salt)


def test_every_group_has_a_number_of_its_own() -> None:
    many = tuple(str(n) for n in range(groups.PRIME - 1))
    numbers = set(groups.numbered(asked(many)).values())
    assert numbers == set(range(1, groups.PRIME))
    with pytest.raises(InvalidParameter, match="65537 groups are too many"):
        groups.numbered(asked((*many, "more")))


def places(person: int, numbers: list[int]) -> list[int]:
    digits = hashlib.md5(f":home:{person}".encode()).hexdigest()
    factor, shift = int(digits[:4], 16) + 1, int(digits[4:8], 16)
    return [(factor * x + shift) % groups.PRIME for x in numbers]


def test_no_group_is_preferred() -> None:
    """Of two groups each has half of the persons, of ten each a tenth, within five deviations."""
    persons = 4000
    numbers = list(groups.numbered(asked(NAMES)).values())
    ranked = [places(person, numbers) for person in range(persons)]
    assert all(len(set(one)) == len(NAMES) for one in ranked)
    for one, other in combinations(range(len(NAMES)), 2):
        less = sum(place[one] < place[other] for place in ranked)
        assert abs(less - persons / 2) < 5 * (persons / 4) ** 0.5
    first = [place.index(min(place)) for place in ranked]
    for group in range(len(NAMES)):
        deviation = (persons * 0.1 * 0.9) ** 0.5
        assert abs(first.count(group) - persons / 10) < 5 * deviation


def test_many_groups_are_found_by_halves() -> None:
    """No row is compared with all of a thousand groups."""
    names = tuple(f"g{n:03}" for n in range(1000))
    home = groups._home(asked(names), {"g": "text"}, "duckdb")
    text = home.sql("duckdb")
    assert text.count("THEN") < 1200
    depths = [text[:at].count("CASE") - text[:at].count("END") for at in range(0, len(text), 500)]
    assert max(depths) <= 9
    assert all(text.index(f"'{a}'") for a, _ in pairwise(names))
