"""Reserve-settle pairs on SQLite against bare durable commits, two per pair, in the same run."""

from __future__ import annotations

import sqlite3
import tempfile
from fractions import Fraction
from itertools import count
from pathlib import Path

from benchmarks.row import Row, interleaved
from topsecret.accounting import limited_domain_loss
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.ledger import Flexible, Ledger, Picks, Price, Request, Reservation

PAIRS = 20  # few at a time, in many turns: a shared disk is ten times slower at some moments
STEP, SHARE = Fraction(1, 2**16), Fraction(1, 2**60)


def run(rounds: int = 60) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=".") as folder:  # where the repository is, not in memory
        ledger = Ledger(Path(folder) / "ledger.db")
        ledger.open_budget("d", Flexible.of(epsilon=1, delta=1e-6), person="user")
        numbers = count()

        def pairs() -> None:
            for _ in range(PAIRS):
                price = Price(limited_domain_loss(10, STEP, SHARE), Picks(10, STEP, SHARE))
                request = Request("d", price, {"number": next(numbers)}, PrivacyUnit("user"))
                held = ledger.reserve(request)
                assert isinstance(held, Reservation)
                ledger.settle(held, {"items": [f"place {n}" for n in range(9)]}, symbols=10)

        bare = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode=WAL")
        bare.execute("PRAGMA synchronous=FULL")
        bare.execute("CREATE TABLE entries (body TEXT)")

        def commits() -> None:
            for _ in range(2 * PAIRS):
                bare.execute("BEGIN IMMEDIATE")
                bare.execute("INSERT INTO entries VALUES (?)", ("x" * 1000,))
                bare.execute("COMMIT")

        ours, peer = interleaved(pairs, commits, rounds)
        ledger.close()
        bare.close()
    # Met by the rate, or where the disk is slower by the distance from bare commits.
    target = max(1.5, PAIRS / 300 / peer)
    what = f"{PAIRS} reserve-settle pairs ({PAIRS / ours:.0f}/s, at least 300/s): bare commits"
    return [Row(what, ours, peer, target)]
