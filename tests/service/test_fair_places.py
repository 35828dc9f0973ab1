"""No account has all engines of a source: one is free for the others, where there are several."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from serving import PATIENCE, here

from topsecret.errors import Closing
from topsecret.service.jobs import release_schedule
from topsecret.service.jobs.fair_places import FairPlaces
from topsecret.service.jobs.release_schedule import Turn, Turns

PATH = "/api/datasets/events/ask"


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def waiting(places: FairPlaces) -> int:
    with places._changed:
        return sum(map(len, places._queues.values()))


def come(places: FairPlaces, who: str) -> Any:
    """Somebody who waits from now on, or is called at once."""
    with places._changed:
        mine = places._enqueued(who)
        places._call()
    return mine


def test_long_questions_of_one_leave_an_engine_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them took both engines, for as long as the time limit lets them."""
    counting, counted, real = list[str](), threading.Event(), Turn.reading

    def reading(turn: Turn) -> None:
        real(turn)
        if turn._who == "ann":
            counting.append("ann")
            assert counted.wait(PATIENCE)

    monkeypatch.setattr(Turn, "reading", reading)
    with here(tmp_path, engines=2) as service:
        places = service.parts.jobs._turns.counting
        bodies = [{"column": "place", "k": k, "epsilon": 0.1} for k in (1, 2, 3)]
        asked = [service.call("ann", "POST", PATH, body).json()["id"] for body in bodies]
        try:
            until(lambda: len(counting) + waiting(places) == len(asked))
            assert counting == ["ann"]
            free = service.answered("bob", PATH, {"column": "place", "k": 4, "epsilon": 0.1})
            assert free["state"] == "answered"
            assert counting == ["ann"]
        finally:
            counted.set()
        assert [service.ended("ann", one)["state"] for one in asked] == ["answered"] * 3


@pytest.mark.parametrize(("engines", "most"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_one_account_has_all_engines_but_one(engines: int, most: int) -> None:
    places = Turns(engines, 0.05).lane("shop").counting
    mine = [come(places, "ann") for _ in range(engines)]
    assert sum(one.called for one in mine) == most
    other = come(places, "bob")
    assert other.called == (engines > 1)
    for _ in range(most):  # whoever leaves makes room for what waits
        places.leave("ann")
    assert all(one.called for one in mine)


def test_questions_of_one_account_come_in_their_order() -> None:
    places = FairPlaces(1, threading.Event())
    places.take("ann")
    mine = [come(places, "ann") for _ in range(4)]
    for called in range(1, 5):
        places.leave("ann")
        assert [one.called for one in mine] == [True] * called + [False] * (4 - called)


def test_a_place_that_was_not_wanted_any_more_is_not_counted() -> None:
    places, stopped = FairPlaces(2, threading.Event(), 1), threading.Event()
    stopped.set()
    for _ in range(2):
        with pytest.raises(Closing):
            places.take("ann", stopped)
    places.take("ann")  # else it would wait for ever
    assert not waiting(places)


def test_a_place_that_is_lent_is_no_longer_its_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset that hangs keeps its account's questions about others from no engine."""
    monkeypatch.setattr(release_schedule, "STUCK", 0.0)
    turns = Turns(2, 0.01, 0.0)
    with Turn(turns, "ann") as stuck:
        stuck.about(("hanging", "hanging.csv"))
        stuck.reading()
        until(turns.hanging)
        stuck.look_at_the_clock()
        with Turn(turns, "ann") as other:
            other.about(("events", "events.csv"))
            other.reading()
            assert other._holds is turns.counting
    assert turns.counting._free == 2
    assert not turns.counting._held
