"""Many processes on one ledger, killed at random, and what must hold afterwards."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from asking import flexible, metered
from clients import ENDS, FLEXIBLE, METERED, Seen, asked, read_log
from sqlalchemy import select

from postgres import Server
from topsecret.ledger import Ledger
from topsecret.ledger.chain import canonical, digest
from topsecret.ledger.schema import ANSWERS, RESERVATIONS

HERE = Path(__file__).parent
PROCESSES, THREADS = 8, 8


@dataclass(frozen=True)
class Outcome:
    """What happened, in numbers."""

    requests: int
    seconds: float
    kills: int
    server_kills: int
    settled: int
    refused: int
    in_doubt: int


def run(
    place: str,
    folder: Path,
    requests: int,
    kills: int,
    server: Server | None = None,
    server_kills: int = 0,
    processes: int = PROCESSES,
) -> Outcome:
    """Let the crowd ask all requests while workers and server are killed; check; report."""
    ledger = Ledger(place)
    # About half of what is asked fits.
    ledger.open_budget(METERED, metered(picks=requests, queries=requests // 3), person="user")
    rho = Fraction(requests) * Fraction(1, 2**15)
    ledger.open_budget(FLEXIBLE, flexible(rho=min(rho, Fraction(1, 100))), person="user")
    start = time.monotonic()
    _drive(place, folder, requests, kills, server, server_kills, processes)
    seconds = time.monotonic() - start
    seen = [line for log in sorted(folder.glob("*.log")) for line in read_log(log)]
    outcome = _checked(ledger, seen, requests, seconds, kills, server_kills)
    ledger.close()
    return outcome


def _drive(
    place: str,
    folder: Path,
    requests: int,
    kills: int,
    server: Server | None,
    server_kills: int,
    processes: int,
) -> None:
    share = -(-requests // processes)

    def start(worker: int) -> subprocess.Popen[bytes]:
        first, last = worker * share, min(requests, (worker + 1) * share)
        log = folder / f"{worker}.log"
        words = [place, str(log), str(first), str(last), str(THREADS)]
        path = os.pathsep.join([str(HERE), str(HERE.parent), *filter(None, sys.path)])
        return subprocess.Popen(
            [sys.executable, str(HERE / "clients.py"), *words],
            env=os.environ | {"PYTHONPATH": path},
        )

    def lines() -> int:
        return sum(len(read_log(log)) for log in folder.glob("*.log"))

    def ended() -> int:
        logs = folder.glob("*.log")
        return len({seen.number for log in logs for seen in read_log(log) if seen.event in ENDS})

    workers = {worker: start(worker) for worker in range(processes)}
    # Spread evenly over the work: the n-th kill comes when so many requests have ended.
    plan = sorted(
        [(requests * (n + 1) // (kills + 2), "worker") for n in range(kills)]
        + [(requests * (n + 1) // (server_kills + 2), "server") for n in range(server_kills)]
    )
    deadline = time.monotonic() + 600 + requests / 10
    while workers:
        assert time.monotonic() < deadline, "the crowd did not finish"
        while plan and ended() >= plan[0][0]:
            if plan.pop(0)[1] == "server":
                assert server is not None
                server.kill()
                time.sleep(random.random() * 0.3)
                server.start()
            else:
                chosen = random.choice(list(workers))
                workers[chosen].kill()
                workers[chosen].wait()
                workers[chosen] = start(chosen)
        for worker, process in list(workers.items()):
            if process.poll() is not None:
                assert process.returncode == 0
                del workers[worker]
        time.sleep(0.02)
    assert not plan, "the crowd finished before all kills"


def _checked(
    ledger: Ledger, seen: list[Seen], requests: int, seconds: float, kills: int, server_kills: int
) -> Outcome:
    report = ledger.check()  # the chain; no admission beyond a limit at any entry; all sums
    assert report.faults == ()
    with ledger._store.reading() as connection:
        query = select(RESERVATIONS, ANSWERS.c.answer).outerjoin(
            ANSWERS, ANSWERS.c.reservation == RESERVATIONS.c.id
        )
        rows = list(connection.execute(query).mappings())
    by_id = {row["id"]: row for row in rows}
    answers: dict[str, set[str]] = {}
    for row in rows:
        assert (row["answer"] is not None) == (row["state"] == "settled")
        if row["answer"] is not None:
            answers.setdefault(row["question"], set()).add(digest(row["answer"]))
    shown: dict[int, set[str]] = {}
    for line in seen:
        if line.event == "reserved":  # no reservation is lost
            assert by_id[line.detail]["request"] == f"r{line.number}"
        if line.event == "shown":  # no answer is served unsettled
            question = digest(canonical(dict(asked(line.number).question)))
            assert line.detail in answers[question]
            shown.setdefault(line.number, set()).add(line.detail)
    assert all(len(found) == 1 for found in shown.values()), "one request, two answers"
    assert {line.number for line in seen if line.event in ENDS} == set(range(requests))
    for name in (METERED, FLEXIBLE):
        account = ledger.account(name)
        assert min(account.left.values()) >= 0
        # A kill leaves at most what its clients had under way.
        assert len(account.pending) <= THREADS * kills + PROCESSES * THREADS * server_kills
    ends = Counter(line.event for line in seen)
    states = Counter(row["state"] for row in rows)
    return Outcome(
        requests,
        seconds,
        kills,
        server_kills,
        states["settled"],
        ends["refused"],
        states["reserved"],
    )
