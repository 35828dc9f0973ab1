"""Requests begin a few at a time, and addresses take turns."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import settings

from topsecret.service import fair_starts
from topsecret.service.app import create_app
from topsecret.service.metrics import Metrics
from topsecret.service.middleware import Edge

CROWD, ROUNDS = 600, 12


class Served:
    """An application whose requests take some rounds of the event loop each."""

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.done: list[str] = []
        self.edge = Edge(
            self.app,
            metrics=Metrics(),
            https=False,
            prefix="",
            refused=None,  # type: ignore[arg-type]
        )

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        self.under_way -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def ask(self, host: str) -> None:
        async def nothing(*_: Any) -> Any:
            return None

        asked = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": (host, 1)}
        await self.edge(asked, nothing, nothing)
        self.done.append(host)


def test_who_comes_last_does_not_wait_for_rounds_of_a_crowd() -> None:
    served = Served()

    async def all_at_once() -> None:
        crowd = [asyncio.create_task(served.ask("192.0.2.1")) for _ in range(CROWD)]
        await asyncio.sleep(0)
        await served.ask("192.0.2.2")
        await asyncio.gather(*crowd)

    asyncio.run(all_at_once())
    assert len(served.done) == CROWD + 1
    # A round begins few, so that it is short whoever else is there.
    assert served.most <= fair_starts.MOST * (ROUNDS + 2)
    # Another address has the next turn, whatever waits.
    assert served.done.index("192.0.2.2") <= fair_starts.MOST * 4


def test_a_network_of_ipv6_is_one_address() -> None:
    served = Served()

    async def all_at_once() -> None:
        crowd = [asyncio.create_task(served.ask(f"2001:db8::{n:x}")) for n in range(CROWD)]
        await asyncio.sleep(0)
        await served.ask("192.0.2.2")
        await asyncio.gather(*crowd)

    asyncio.run(all_at_once())
    assert served.done.index("192.0.2.2") <= fair_starts.MOST * 4


def test_who_is_gone_before_its_turn_takes_none() -> None:
    starts = fair_starts.FairStarts()

    async def some_are_cancelled() -> list[int]:
        begun: list[int] = []

        async def one(number: int) -> None:
            await starts.turn("192.0.2.1")
            begun.append(number)

        tasks = [asyncio.create_task(one(number)) for number in range(5 * fair_starts.MOST)]
        await asyncio.sleep(0)
        for task in tasks[fair_starts.MOST : -1]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return begun

    begun = asyncio.run(some_are_cancelled())
    assert begun == [*range(fair_starts.MOST), 5 * fair_starts.MOST - 1]


def test_the_schema_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is long, open to all, and was encoded anew for everybody."""
    app = create_app(settings(tmp_path))

    async def fetched_twice() -> tuple[bytes, bytes]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            first = await client.get("/openapi.json")
            monkeypatch.setattr(app, "openapi", dict)
            return first.content, (await client.get("/openapi.json")).content

    first, second = asyncio.run(fetched_twice())
    assert first == second
    assert b'"paths"' in first
    app.state.parts.close()
