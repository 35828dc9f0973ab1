"""A realistic events file for the demo: check-ins of a made-up city.

Made up from a fixed seed, so there is nobody to protect in it and everyone gets the same file.
People differ as in real data: visitors see a few famous sights, residents go to dozens of places,
so a cap on each person's places drops mostly what residents like. The names are not known
beforehand: a market opened this month, and residents check in at addresses that only they have.
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
RESIDENTS = 3_000
PERSONS = 8_000
PLACES = 4_000
SEED = 20_190_509

_SIGHTS = {
    "Central Station": 24,
    "Old Town Square": 22,
    "City Airport": 15,
    "Castle Hill": 14,
    "Museum of Modern Art": 14,
    "Grand Theatre": 13,
    "Lighthouse Beach": 13,
    "Ferry Terminal": 12,
    "Botanical Garden": 8,
    "Cathedral": 6,
}
"""What visitors see, with weights."""
_NEW = "Canal Night Market"
_OPENED = 19 * 24 * 60
_FAVOURITES = (
    "Harbour Market",
    "Riverside Park",
    "University Library",
    _NEW,
    "Northgate Mall",
    "Central Station",
    "Olympic Stadium",
    "Farmers' Hall",
    "Lakeside Pool",
)
"""Where residents go most, the first most of all."""
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
    # Zipf's law behind a flat head: a city has several busy places, not one.
    head = len(_FAVOURITES)
    weights = list(
        itertools.accumulate(1 / (7 + r / 2 if r < head else 13 + r) for r in range(PLACES))
    )
    sights, fame = list(_SIGHTS), list(itertools.accumulate(_SIGHTS.values()))
    streets = [f"{a} {b}" for a, b in itertools.product(_FIRST.split(), _STREETS.split())]
    start = datetime(2024, 5, 1, 5, 0)
    moments = [
        (start + timedelta(minutes=minute)).isoformat(timespec="minutes")
        for minute in range(30 * 24 * 60)
    ]
    # Some residents check in all the time, others seldom; visitors stay for a few days.
    activity = [rng.lognormvariate(0, 0.6) for _ in range(RESIDENTS)]
    activity += [0.03 * rng.lognormvariate(0, 0.3) for _ in range(PERSONS - RESIDENTS)]
    regulars: dict[int, str] = {}
    rows = []
    more = rng.choices(range(PERSONS), weights=activity, k=ROWS - PERSONS)
    for person in (*range(PERSONS), *more):
        if person >= RESIDENTS:
            place = sights[bisect(fame, rng.random() * fame[-1])]
        elif rng.random() < 0.1:
            place = f"{person} {streets[person % len(streets)]}"  # at home
        else:
            place = places[bisect(weights, rng.random() * weights[-1])]
            if rng.random() < 0.2:  # people return to a favourite place
                place = regulars.setdefault(person, place)
        since = _OPENED if place == _NEW else 0
        rows.append((moments[rng.randrange(since, len(moments))], f"user-{person:05d}", place))
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
    return [*_FAVOURITES, *names[: PLACES - len(_FAVOURITES)]]
