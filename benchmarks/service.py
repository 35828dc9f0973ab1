"""The service under load: 200 analysts ask for stored answers; beside it an empty FastAPI route.

Both run as one process with uvicorn, take turns in the same run and are asked by the same raw
client over 200 open connections. What counts is the processor's time that each process needs for a
request, whose inverse is its rate on a core of its own: the client and other programs do not change
it. Then fresh questions: what the service adds to the engine.

    python -m benchmarks service
"""

import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from benchmarks.row import Row
from topsecret.service.app import create_app
from topsecret.service.connections import ImpatientProtocol
from topsecret.service.datasets import NewDataset
from topsecret.service.jobs.job import Asked
from topsecret.service.schema import USERS
from topsecret.service.serve import bound
from topsecret.service.settings import Settings
from topsecret.service.state import Parts

ANALYSTS, ROUNDS, SECONDS = 200, 3, 4.0
FRESH = 12
PLENTY = 10**9


@dataclass(frozen=True)
class Ready:
    settings: Settings
    keys: list[str]
    answers: list[str]


def prepared(folder: Path) -> Ready:
    """A service with 200 analysts, each with a key and the stored answer to one question."""
    files = folder / "files"
    files.mkdir()
    columns = tuple(f"c{number}" for number in range(FRESH + 1))
    rows = (
        ",".join([f"u{person}", *(f"v{person % (5 + n)}" for n in range(FRESH + 1))])
        for person in range(100_000)
    )
    (files / "wide.csv").write_text("\n".join((",".join(("user", *columns)), *rows)) + "\n")
    settings = Settings(
        home=folder,
        files=(files,),
        tick=0.05,
        requests_per_minute=PLENTY,
        questions_per_minute=PLENTY,
        tries_per_minute=PLENTY,
    )
    parts = Parts(settings)
    parts.datasets.register(
        NewDataset("wide", "Wide", "wide.csv", "user", columns, None, 20.0, 1e-5, 1000, 4000)
    )
    names = [f"a{number}" for number in range(ANALYSTS)]
    with parts.store.writing() as connection:  # nobody logs in: no need to hash 200 passwords
        people = {"role": "analyst", "password": "-", "active": 1, "created": 0.0}
        connection.execute(USERS.insert(), [{"name": name, **people} for name in names])
    keys = [parts.accounts.new_key(name, "load") for name in names]
    answers = []
    for name in names:
        parts.datasets.allow("wide", name, {"queries": 1000, "picks": 4000})
        job, _ = parts.jobs.ask(name, "wide", Asked("c0", 3, None), "load", "")
        parts.jobs.run(job.id)
        answers.append(job.id)
    parts.store.close()
    parts.ledger.close()
    return Ready(settings, keys, answers)


def serve_ours(settings: Settings, listening: Any, quiet: str) -> None:
    import sys

    sys.stderr = Path(quiet).open("w")  # noqa: SIM115  # the log goes to a file, as it would
    app, http = create_app(settings), ImpatientProtocol
    config = uvicorn.Config(app, http=http, log_config=None, access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


def serve_empty(listening: Any) -> None:
    app = FastAPI()

    @app.get("/empty")
    async def empty() -> dict[str, str]:
        return {"status": "ok"}

    config = uvicorn.Config(app, log_config=None, access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


async def client(port: int, request: bytes, until: float, times: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        begun = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - begun)
    writer.close()


async def load(port: int, requests: list[bytes], process: int) -> tuple[float, float]:
    """The process' seconds for one request, and the median milliseconds that a client waits."""
    times: list[float] = []
    begun = used(process)
    until = time.perf_counter() + SECONDS
    await asyncio.gather(*(client(port, request, until, times) for request in requests))
    return (used(process) - begun) / len(times), 1000 * statistics.median(times)


def used(process: int) -> float:
    """Seconds of processor that a process has used (Linux)."""
    after_the_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_the_name[11]) + int(after_the_name[12])) / os.sysconf("SC_CLK_TCK")


def request(path: str, key: str = "") -> bytes:
    more = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode()


def fresh(port: int, ready: Ready) -> tuple[float, float]:
    """Seconds for fresh questions asked all at once, and of the engine alone, one by one."""
    import httpx

    from topsecret.questions.top_k import top_k

    headers = {"authorization": f"Bearer {ready.keys[1]}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as web:
        begun = time.perf_counter()
        jobs = [
            web.post("/api/datasets/wide/ask", json={"column": f"c{number}", "k": 3}).json()["id"]
            for number in range(1, FRESH + 1)
        ]
        for job in jobs:
            while web.get(f"/api/answers/{job}").json()["state"] == "working":
                time.sleep(0.02)
        asked = time.perf_counter() - begun
    path = ready.settings.files[0] / "wide.csv"
    top_k(path, item="c1", person="user", k=3, epsilon=1, mechanism="limited-domain")
    begun = time.perf_counter()
    for number in range(1, FRESH + 1):
        top_k(path, item=f"c{number}", person="user", k=3, epsilon=1, mechanism="limited-domain")
    return asked, time.perf_counter() - begun


def run() -> list[Row]:
    """Seconds of processor per stored answer and per empty reply; seconds of fresh questions."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as name, bound("127.0.0.1", 0) as a, bound("", 0) as b:
        ready = prepared(Path(name))
        log = str(Path(name) / "log")
        ours = fork.Process(target=serve_ours, args=(ready.settings, a, log), daemon=True)
        empty = fork.Process(target=serve_empty, args=(b,), daemon=True)
        ours.start()
        empty.start()
        port, other = a.getsockname()[1], b.getsockname()[1]
        stored = [
            request(f"/api/answers/{answer}", key)
            for answer, key in zip(ready.answers, ready.keys, strict=True)
        ]
        plain = [request("/empty")] * ANALYSTS
        assert ours.pid is not None
        assert empty.pid is not None
        both = (("empty", other, plain, empty.pid), ("stored", port, stored, ours.pid))
        asyncio.run(load(port, stored, ours.pid))  # keys are hashed once: not part of the rate
        took: dict[str, list[float]] = {"empty": [], "stored": []}
        for _ in range(ROUNDS):
            for what, *of in both:
                each_took, median = asyncio.run(load(*of))
                took[what].append(each_took)
                rate = f"{1 / each_took:.0f} a second of processor"
                print(f"{ANALYSTS} analysts, {what}: {rate}, median {median:.1f} ms")
        asked, engine = fresh(port, ready)
        for process in (ours, empty):
            process.terminate()
            process.join(10)
    each = {what: statistics.median(times) for what, times in took.items()}
    return [
        Row("service: a stored answer, 200 analysts", each["stored"], each["empty"], 2.0),
        Row(f"service: {FRESH} fresh questions at once", asked, engine, 2.0),
    ]
