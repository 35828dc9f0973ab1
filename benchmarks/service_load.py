"""The service under load: 64 accounts for a minute, and one question beside another's hundred.

No reply may be an error. Somebody with one question waits at most twice as long while another
analyst has a hundred waiting as they wait alone.

    python -m benchmarks service_load
"""

import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.row import Row
from benchmarks.service import PLENTY, serve_ours
from topsecret.service.datasets import NewDataset
from topsecret.service.schema import USERS
from topsecret.service.serve import bound
from topsecret.service.settings import Settings
from topsecret.service.state import Parts

ACCOUNTS, SECONDS, WAITING, ROUNDS = 64, 60.0, 100, 3
COLUMNS = tuple(f"c{number}" for number in range(40))
TICK = 1.0


def prepared(folder: Path) -> tuple[Settings, list[str]]:
    """A service with the usual tick, 64 analysts and a dataset of 40 columns."""
    files = folder / "files"
    files.mkdir()
    rows = (
        ",".join([f"u{person}", *(f"v{person % (5 + n)}" for n in range(len(COLUMNS)))])
        for person in range(20_000)
    )
    (files / "wide.csv").write_text("\n".join((",".join(("user", *COLUMNS)), *rows)) + "\n")
    limits = {"requests_per_minute": PLENTY, "questions_per_minute": PLENTY}
    limits |= {"plans_per_minute": PLENTY, "tries_per_minute": PLENTY}
    settings = Settings(home=folder, files=(files,), tick=TICK, **limits)
    parts = Parts(settings)
    new = NewDataset("wide", "Wide", "wide.csv", "user", COLUMNS, None, 20.0, 1e-5, 10**6, 10**6)
    parts.datasets.register(new)
    names = [f"a{number}" for number in range(ACCOUNTS)]
    with parts.store.writing() as connection:  # nobody logs in: no need to hash passwords
        people = {"role": "analyst", "password": "-", "active": 1, "created": 0.0}
        connection.execute(USERS.insert(), [{"name": name, **people} for name in names])
    for name in names:
        parts.datasets.allow("wide", name, {"queries": 10**6, "picks": 10**6})
    keys = [parts.accounts.new_key(name, "load") for name in names]
    parts.store.close()
    parts.ledger.close()
    return settings, keys


class Client:
    """One account over one connection."""

    def __init__(self, port: int, key: str, statuses: Counter[int]) -> None:
        self._port, self._key, self._statuses = port, key, statuses

    async def __aenter__(self) -> "Client":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: Bearer {self._key}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
        reply = await self._reader.readuntil(b"\r\n\r\n")
        self._statuses[int(reply.split()[1])] += 1
        length = int(reply.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return json.loads(await self._reader.readexactly(length))

    async def ask(self, column: str, k: int) -> str:
        asked = await self.call("POST", "/datasets/wide/ask", {"column": column, "k": k})
        return str(asked["id"])

    async def ended(self, job: str) -> str:
        while True:
            found = await self.call("GET", f"/answers/{job}")
            if found["state"] != "working":
                return str(found["state"])
            await asyncio.sleep(0.05)


async def crowd(port: int, keys: list[str]) -> tuple[Counter[int], Counter[str]]:
    """64 accounts plan, ask, wait and look for a minute; what they got."""
    statuses: Counter[int] = Counter()
    states: Counter[str] = Counter()
    until = time.monotonic() + SECONDS

    async def one(number: int) -> None:
        async with Client(port, keys[number], statuses) as client:
            turn = number
            while time.monotonic() < until:
                column, k = COLUMNS[turn % len(COLUMNS)], 1 + turn % 20
                await client.call("POST", "/datasets/wide/plan", {"column": column, "k": k})
                states[await client.ended(await client.ask(column, k))] += 1
                await client.call("GET", "/datasets/wide/budget")
                turn += ACCOUNTS

    await asyncio.gather(*(one(number) for number in range(ACCOUNTS)))
    return statuses, states


async def beside(port: int, keys: list[str]) -> tuple[float, float]:
    """Seconds for one question: alone, and while another has a hundred waiting."""
    statuses: Counter[int] = Counter()
    crowded, fresh = [], iter(range(30, 100))

    async def single(column: str) -> float:
        async with Client(port, keys[0], statuses) as one:
            begun = time.monotonic()
            await one.ended(await one.ask(column, next(fresh)))
            return time.monotonic() - begun

    alone = [await single(COLUMNS[0]) for _ in range(ROUNDS)]
    for _ in range(ROUNDS):
        k = min(next(fresh), next(fresh), next(fresh))
        async with Client(port, keys[1], statuses) as many:
            waiting = [await many.ask(COLUMNS[n % 40], k + n // 40) for n in range(WAITING - 1)]
        crowded.append(await single(COLUMNS[1]))
        # A connection is for a while alone: those that are idle are closed.
        async with Client(port, keys[1], statuses) as many:
            for job in waiting:
                await many.ended(job)
    assert set(statuses) <= {200, 202}, statuses
    return statistics.median(crowded), statistics.median(alone)


def run() -> list[Row]:
    """Seconds for one question beside a hundred and alone; no error in a minute of 64 accounts."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as name, bound("127.0.0.1", 0) as listening:
        settings, keys = prepared(Path(name))
        log = str(Path(name) / "log")
        ours = fork.Process(target=serve_ours, args=(settings, listening, log), daemon=True)
        ours.start()
        port = listening.getsockname()[1]
        statuses, states = asyncio.run(crowd(port, keys))
        print(f"{ACCOUNTS} accounts, {SECONDS:.0f} s: {dict(statuses)}, questions {dict(states)}")
        crowded, alone = asyncio.run(beside(port, keys))
        ours.terminate()
        ours.join(60)
    assert set(statuses) <= {200, 202}, "a reply was an error"
    assert set(states) == {"answered"}, "a question was not answered"
    return [Row(f"service: one question beside {WAITING} of another's", crowded, alone, 2.0)]
