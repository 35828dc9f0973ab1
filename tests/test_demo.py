import csv
import hashlib
import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

from pages import PAGES
from topsecret import top_k
from topsecret.errors import SourceError
from topsecret.sources.demo_data import PERSONS, ROWS, write_checkins

DIGEST = "af8cceed8b1ec524a28198ce31bcc7b909f580bba0484c84be9c8b01ede0293d"
"""Of the file that everyone gets, on every machine and in every version until it is changed."""
CAP, CAPPED, LOST, ALONE = 20, 4, "six", 2_938
"""How many places of each person are kept, how many of the ten are left and lost then, and how many
places have one person only: the README and the changelog say so."""


def test_everyone_gets_the_same_file(tmp_path: Path) -> None:
    first = write_checkins(tmp_path).read_bytes()
    assert hashlib.sha256(first).hexdigest() == DIGEST
    lines = first.decode().splitlines()
    assert lines[0] == "time,user,place,minutes"
    assert len(lines) == ROWS + 1
    assert len({line.split(",")[1] for line in lines[1:]}) == PERSONS


def test_a_cap_loses_what_residents_like_and_many_places_have_one_person(
    tmp_path: Path,
) -> None:
    with write_checkins(tmp_path).open(encoding="utf-8", newline="") as file:
        visits = sorted({(row["user"], row["place"]) for row in csv.DictReader(file)})
    of_person: dict[str, list[str]] = {}
    for person, place in visits:
        of_person.setdefault(person, []).append(place)
    rng = random.Random(1)
    kept = [rng.sample(places, min(CAP, len(places))) for places in of_person.values()]
    truth = Counter(place for _, place in visits)
    capped = Counter(itertools.chain(*kept))
    leading, left = truth.most_common(11), {place for place, _ in capped.most_common(10)}
    assert leading[9][1] > leading[10][1] + 100, "the ten stand out"
    best = {place for place, _ in leading[:10]}
    assert len(best & left) == CAPPED
    assert f"With {CAP} per person, {LOST} of the true ten are lost" in PAGES["README.md"]
    assert "Canal Night Market" in best
    # Tests draw the same noise every time; other noise hardly ever names another ten.
    named = top_k(tmp_path / "checkins.csv", item="place", person="user", k=10, epsilon=1.0)
    assert set(named.items) == best
    assert sum(persons == 1 for persons in truth.values()) == ALONE


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="cannot be written; choose another place"):
        write_checkins(tmp_path / "file")
