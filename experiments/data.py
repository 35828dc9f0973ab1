"""The public datasets as histograms: how many distinct people have each item.

They are read from the folder named by ``TOPSECRET_DATA`` or from ``../shared/data``; they are not
part of the repository. docs/results/data.md says where the originals are.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def folder() -> Path:
    """Where the datasets are."""
    named = os.environ.get("TOPSECRET_DATA")
    return Path(named) if named else Path(__file__).parents[2] / "shared" / "data"


def available() -> bool:
    """Whether the data folder is there at all."""
    return folder().is_dir()


def _lines(name: str) -> Iterator[str]:
    with gzip.open(folder() / name, "rt", encoding="utf-8", errors="replace") as file:
        yield from file


def _column(name: str, column: str) -> Counts:
    """Counts that a file already has."""
    rows = csv.DictReader(_lines(name))
    return _ranked(int(float(row[column])) for row in rows if row[column])


def _pairs(name: str, person: str, item: str) -> set[tuple[str, str]]:
    """The distinct (person, item) of a file with a row for each event."""
    return {(row[person], row[item]) for row in csv.DictReader(_lines(name))}


def _baskets(name: str, separator: str | None) -> set[tuple[str, str]]:
    """One person per line, the items in it."""
    return {
        (str(person), item)
        for person, line in enumerate(_lines(name))
        for item in line.strip().split(separator)
        if item
    }


def _steam() -> set[tuple[str, str]]:
    with zipfile.ZipFile(folder() / "steam_200k" / "steam.zip") as archive:
        name = next(n for n in archive.namelist() if n.endswith("game_purchase.dat"))
        text = io.TextIOWrapper(archive.open(name), encoding="utf-8", errors="replace")
        next(text)  # the header
        rows = (line.split()[:2] for line in text if line.strip())
        return {(person, item) for person, item in rows}


def steam_hours() -> Iterator[tuple[str, str, float]]:
    """Person, game and hours of each row."""
    with zipfile.ZipFile(folder() / "steam_200k" / "steam.zip") as archive:
        name = next(n for n in archive.namelist() if n.endswith("game_play.dat"))
        text = io.TextIOWrapper(archive.open(name), encoding="utf-8", errors="replace")
        next(text)  # the header
        for line in text:
            if line.strip():
                person, game, hours = line.split()
                yield person, game, float(hours)


def _amounts(name: str, person: str, item: str, amount: str) -> dict[tuple[str, str], int]:
    """How much each person adds to each item, of a file with a row for each pair."""
    rows = csv.DictReader(_lines(name))
    return {(row[person], row[item]): int(row[amount]) for row in rows}


def _prefixes() -> Counts:
    return _ranked(
        int(line.rsplit("\t", 1)[1])
        for line in _lines("aol_query_prefixes/query_6bytes_sorted.txt.gz")
    )


def _bins(name: str) -> Counts:
    return _ranked(np.load(folder() / "dpbench_histograms" / f"{name}.npy").astype(int).tolist())


def _ranked(counts: Iterable[int]) -> Counts:
    return np.array(sorted((c for c in counts if c > 0), reverse=True), dtype=np.int64)


_CITIES = "foursquare_www2019_cities"
_SEPGCN = "brightkite_gowalla_sepgcn"

PERSONS: dict[str, Callable[[], set[tuple[str, str]]]] = {
    "Kuala Lumpur": lambda: _pairs(f"{_CITIES}/KualaLampur_user_venue.csv.gz", "user", "venue"),
    "Jakarta": lambda: _pairs(f"{_CITIES}/Jakarta_user_venue.csv.gz", "user", "venue"),
    "New York 2019": lambda: _pairs(f"{_CITIES}/NYC_user_venue.csv.gz", "user", "venue"),
    "Gowalla 10-core": lambda: _pairs("gowalla_10core/user_item.csv.gz", "user", "item"),
    "BrightKite filtered": lambda: _pairs(
        f"{_SEPGCN}/brightkite_user_venue.csv.gz", "user", "venue"
    ),
    "Gowalla filtered": lambda: _pairs(f"{_SEPGCN}/gowalla_user_venue.csv.gz", "user", "venue"),
    "Online retail": lambda: _pairs("online_retail/customer_item.csv.gz", "customer", "stockcode"),
    "Steam": _steam,
    "BMS1": lambda: _baskets("fimi_transactions/BMS1.dat.gz", None),
    "T10I4D100K": lambda: _baskets("fimi_transactions/T10I4D100K.dat.gz", None),
    "FIMI retail": lambda: _baskets("fimi_transactions/retail.dat.gz", None),
    "Groceries": lambda: _baskets("fimi_transactions/groceries.csv.gz", ","),
    "Mushroom": lambda: _baskets("fimi_transactions/mushroom.dat.gz", None),
    "Bangkok": lambda: _pairs(f"{_SEPGCN}/bkk_user_venue.csv.gz", "user", "venue"),
    "Tokyo filtered": lambda: _pairs(f"{_SEPGCN}/tko_user_venue.csv.gz", "user", "venue"),
}
"""The sets of which it is known who has what: the distinct (person, item). Foursquare of 2014 is
not among them: its people are a reconstruction."""

AMOUNTS: dict[str, Callable[[], dict[tuple[str, str], int]]] = {
    "Kuala Lumpur": lambda: _amounts(
        f"{_CITIES}/KualaLampur_user_venue.csv.gz", "user", "venue", "checkins"
    ),
    "Jakarta": lambda: _amounts(
        f"{_CITIES}/Jakarta_user_venue.csv.gz", "user", "venue", "checkins"
    ),
    "New York 2019": lambda: _amounts(
        f"{_CITIES}/NYC_user_venue.csv.gz", "user", "venue", "checkins"
    ),
    "Online retail": lambda: _amounts(
        "online_retail/customer_item.csv.gz", "customer", "stockcode", "rows"
    ),
}
"""How many rows each person has of each item, where that is known."""

SETS: dict[str, Callable[[], Counts]] = {
    "Foursquare": lambda: _column(
        "foursquare_tsmc2014/NYC_TKY_user_counts.csv.gz", "distinct_users"
    ),
    "Kuala Lumpur": lambda: _of_persons("Kuala Lumpur"),
    "Jakarta": lambda: _of_persons("Jakarta"),
    "New York 2019": lambda: _of_persons("New York 2019"),
    "Gowalla 10-core": lambda: _of_persons("Gowalla 10-core"),
    "BrightKite filtered": lambda: _of_persons("BrightKite filtered"),
    "Gowalla filtered": lambda: _of_persons("Gowalla filtered"),
    "Online retail": lambda: _of_persons("Online retail"),
    "Steam": lambda: _of_persons("Steam"),
    "BMS1": lambda: _of_persons("BMS1"),
    "T10I4D100K": lambda: _of_persons("T10I4D100K"),
    "FIMI retail": lambda: _of_persons("FIMI retail"),
    "Groceries": lambda: _of_persons("Groceries"),
    "Mushroom": lambda: _of_persons("Mushroom"),
    "AOL prefixes": _prefixes,
    "Goodreads": lambda: _column("books_news_counts/goodreads_books.csv.gz", "ratings_count"),
    "Goodbooks": lambda: _column("books_news_counts/goodbooks10k_counts.csv.gz", "ratings_count"),
    "News shares": lambda: _column("books_news_counts/online_news_shares_subset.csv.gz", "shares"),
    "SEARCHLOGS": lambda: _bins("SEARCHLOGS.n4096"),
    "MEDCOST": lambda: _bins("MEDCOST.n4096"),
    "NETTRACE": lambda: _bins("NETTRACE.n4096"),
    "PATENT": lambda: _bins("PATENT.n4096"),
}


def _of_persons(name: str) -> Counts:
    """Distinct people per item."""
    return _ranked(Counter(item for _, item in PERSONS[name]()).values())


@cache
def counts(name: str) -> Counts:
    """The counts of one dataset, largest first."""
    return SETS[name]()
