"""Accounts take turns: nobody waits behind all previews of another."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from serving import PATIENCE, Here

from topsecret.service import api
from topsecret.service.account_places import AccountPlaces


async def settled() -> None:
    """Let everybody who can go on go on."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_accounts_take_turns_and_have_a_number_of_their_own() -> None:
    async def wait(places: AccountPlaces, order: list[str], who: str) -> None:
        await places.take(who)
        order.append(who)

    async def main() -> None:
        places, order = AccountPlaces(3, each=2), list[str]()
        tasks = [asyncio.create_task(wait(places, order, who)) for who in "aaaabb"]
        await settled()
        assert order == ["a", "a", "b"]  # a third would be one too many of a's
        places.leave("a")
        await settled()
        assert order[3:] == ["b"]
        places.leave("b")
        await settled()
        assert order[4:] == ["a"]
        places.leave("b")
        await settled()
        assert order[5:] == []  # a has two
        places.leave("a")
        await settled()
        assert order[5:] == ["a"]
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_who_gives_up_takes_no_place() -> None:
    async def main() -> None:
        places = AccountPlaces(1)
        await places.take("a")
        waiting = [asyncio.create_task(places.take(who)) for who in "bb"]
        await settled()
        waiting[0].cancel()
        await settled()
        places.leave("a")
        waiting[1].cancel()  # as it is called
        await settled()
        assert all(one.cancelled() for one in waiting)
        async with places.turn("c"), asyncio.timeout(PATIENCE):
            pass

    asyncio.run(main())


def test_a_preview_waits_behind_one_of_another_account(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"column": "place", "k": 2, "epsilon": 0.3}
    order, go_on, real = list[Any](), threading.Event(), api.preview

    def preview(dataset: Any, account: Any, share: Any, asked: Any) -> Any:
        order.append(share.analyst)
        assert go_on.wait(PATIENCE)
        return real(dataset, account, share, asked)

    def plan(who: str) -> int:
        return service.call(who, "POST", "/api/datasets/events/plan", body).status_code

    monkeypatch.setattr(api, "preview", preview)
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(plan, "ann") for _ in range(6)]
        queues = service.parts.planning._queues
        _until(lambda: len(order) == 1 and len(queues.get("ann", ())) == 5)
        sent.append(pool.submit(plan, "bob"))
        _until(lambda: "bob" in queues)
        go_on.set()
        assert {one.result() for one in sent} == {200}
    assert order == ["ann", "bob", *["ann"] * 5]


def _until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
