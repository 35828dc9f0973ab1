"""Time tells little: two very different data sets look alike from outside."""

import time
from pathlib import Path

from serving import PLACES, Here, here, write_events

from topsecret.service.datasets import NewDataset

TICK = 2.0


def test_a_large_and_a_small_data_set_answer_at_the_same_tick(tmp_path: Path) -> None:
    with here(tmp_path, tick=TICK) as service:
        files = tmp_path / "files"
        write_events(files / "small.csv", {"Harbour": 2})
        rows = [f"u{person % 50_000},p{person * 7919 % 20_011},red" for person in range(300_000)]
        write_events(files / "large.csv", PLACES, "\n".join(rows))
        took = {}
        for name in ("small", "large"):
            service.parts.datasets.register(
                NewDataset(name, name, f"{name}.csv", "user", ("place",), None, 4.0, 1e-5)
            )
            service.parts.datasets.allow(name, "ann", {"epsilon": 4.0})
        service.parts.datasets.forget()
        warm(service)
        engine = {}
        for name in ("small", "large"):
            body = {"column": "place", "k": 1, "epsilon": 1.0}
            begun = time.time()
            asked = service.call("ann", "POST", f"/api/datasets/{name}/ask", body).json()
            job = service.ended("ann", asked["id"])
            took[name] = time.time() - begun
            assert job["state"] == "answered"
            assert asked["state"] == "working"
            row = _row(service, asked["id"])
            ticks = (row["shown"] - row["asked"]) / TICK
            assert abs(ticks - round(ticks)) < 1e-6
            engine[name] = round(ticks)
            # The receipt's time is the question's, not the engine's.
            assert job["answer"]["time"][:19] == job["asked"][:19]
        assert engine == {"small": 1, "large": 1}
        assert abs(took["small"] - took["large"]) < TICK / 4


def test_nothing_moves_before_the_tick(tmp_path: Path) -> None:
    with here(tmp_path, tick=3.0) as service:
        warm(service)
        body = {"column": "place", "k": 1, "epsilon": 1.0}
        asked = service.call("ann", "POST", "/api/datasets/events/ask", body).json()
        while _row(service, asked["id"])["state"] == "working":
            time.sleep(0.01)
        assert time.time() < _row(service, asked["id"])["shown"] - 0.5
        job = service.call("ann", "GET", f"/api/answers/{asked['id']}").json()
        assert job == asked
        # The budget as it is shown stands still between ticks, too.
        first = service.parts.datasets.account("events")
        assert service.parts.datasets.account("events") is first


def warm(service: Here) -> None:
    """Calibration is public computing and happens once; engines are what is compared."""
    for epsilon in (1.0,):
        body = {"column": "place", "k": 1, "epsilon": epsilon}
        service.call("ann", "POST", "/api/datasets/events/plan", body)


def _row(service: Here, identity: str):  # type: ignore[no-untyped-def]
    from sqlalchemy import select

    from topsecret.service.schema import JOBS

    with service.parts.store.reading() as connection:
        return connection.execute(select(JOBS).where(JOBS.c.id == identity)).mappings().one()
