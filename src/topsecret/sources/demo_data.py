"""A realistic events file for the demo: check-ins of a made-up city.

Made up from a fixed seed, so there is nobody to protect in it and everyone gets the same file.
"""

from __future__ import annotations

import csv
import itertools
import random
from bisect import bisect
from datetime import datetime, timedelta
from pathlib import Path

from topsecret.errors import SourceError

ROWS = 200_000
PERSONS = 20_000
PLACES = 4_000
SEED = 20_190_509

_LANDMARKS = (
    "Central Station",
    "Harbour Market",
    "City Airport",
    "Riverside Park",
    "University Library",
    "Grand Theatre",
    "Old Town Square",
    "Lighthouse Beach",
    "Museum of Modern Art",
    "Northgate Mall",
    "St. Anne's Hospital",
    "Olympic Stadium",
    "Botanical Garden",
    "Ferry Terminal",
    "Castle Hill",
)
_FIRST = """
Amber Blue Copper Corner Crescent Eastside Elm Fountain Foxglove Golden Green Hazel Hillside
Ivy Juniper King's Lantern Lakeside Linden Maple Meadow Midtown Mill Millstone Moonlight
North Oak Old Orchard Paper Pearl Pine Queen's Quiet Red River Rose Saffron Silver South
Spring Station Stone Sunny Swan Tower Upper Velvet West Willow Windmill
"""
_STREETS = "Street Yard Lane Gate Garden Bridge Row Square"
_LONG_STAYS = {"Airport": 120, "Theatre": 150, "Stadium": 180, "Library": 160, "Beach": 140}
_LONG_STAYS |= {"Cinema": 130, "Hotel": 600, "Hospital": 90, "Gym": 70, "Art": 100}
_KINDS = "Coffee Bakery Books Gym Noodles Pharmacy Cinema Bar Grocery Bistro Hotel Pizza Clinic"


def write_checkins(directory: Path) -> Path:
    """Write ``checkins.csv`` into the directory and return its path."""
    path = directory / "checkins.csv"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("time", "user", "place", "minutes"))
            stays = random.Random(SEED + 1)
            for row in _checkins(random.Random(SEED)):
                table.writerow((*row, _minutes(row[2], stays)))
    except OSError:
        raise SourceError(
            f"{path} cannot be written; choose another place with --directory"
        ) from None
    return path


def _checkins(rng: random.Random) -> list[tuple[str, str, str]]:
    places = _places(rng)
    # Zipf's law with a flat head: a city has several busy places, not one.
    weights = list(itertools.accumulate(1 / (rank + 4) for rank in range(len(places))))
    start = datetime(2024, 5, 1, 5, 0)
    moments = [
        (start + timedelta(minutes=minute)).isoformat(timespec="minutes")
        for minute in range(30 * 24 * 60)
    ]
    rows = []
    # A few persons check in all the time, most of them seldom.
    activity = list(itertools.accumulate(rng.paretovariate(1.6) for _ in range(PERSONS)))
    regulars: dict[int, str] = {}
    for person in rng.choices(range(PERSONS), cum_weights=activity, k=ROWS):
        place = places[bisect(weights, rng.random() * weights[-1])]
        if rng.random() < 0.3:  # people return to a favourite place
            place = regulars.setdefault(person, place)
        rows.append((rng.choice(moments), f"user-{person:05d}", place))
    rows.sort()
    return rows


def _minutes(place: str, rng: random.Random) -> int:
    """How long somebody stays: a film takes longer than a coffee."""
    usual = _LONG_STAYS.get(place.rsplit(" ", 1)[-1], 20)
    return max(1, round(rng.lognormvariate(0, 0.5) * usual))


def _places(rng: random.Random) -> list[str]:
    names = [
        f"{first} {street} {kind}"
        for first, street, kind in itertools.product(
            _FIRST.split(), _STREETS.split(), _KINDS.split()
        )
    ]
    rng.shuffle(names)
    return [*_LANDMARKS, *names[: PLACES - len(_LANDMARKS)]]
