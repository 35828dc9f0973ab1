"""The questions of a worker that died are taken over by one other, however many look at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

from serving import PATIENCE, here
from sqlalchemy import Engine, event, func, select, text, update

from topsecret.ledger.store import Store
from topsecret.service import schema
from topsecret.service.jobs.job import Asked
from topsecret.service.jobs.release_schedule import Turns
from topsecret.service.jobs.worker import Desk
from topsecret.service.schema import JOBS, WORKERS

WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")


def test_a_question_is_taken_over_by_one_worker(
    tmp_path: Path, postgres_url: str, monkeypatch: Any
) -> None:
    """Two took it, where both had looked before either wrote: one of them called it in doubt."""
    with here(tmp_path, database=postgres_url) as service:
        jobs, store = service.parts.jobs, service.parts.store
        monkeypatch.setattr(service.parts.desk._jobs, "take_over", lambda *_: [])
        job, _ = jobs.ask("bob", "events", Asked("place", 1, 0.1), "lost", "dead")
        names, take_over = ("one", "two"), type(jobs).take_over
        with ThreadPoolExecutor() as pool:
            with store.writing() as connection:
                connection.execute(select(JOBS.c.id).where(JOBS.c.id == job.id).with_for_update())
                taking = [pool.submit(take_over, jobs, name, names) for name in names]
                with store.reading() as looking:
                    while looking.execute(WAITING).scalar_one() < len(names):
                        assert not any(one.done() for one in taking)
                        looking.execute(select(func.pg_stat_clear_snapshot()))
            found = [one.result(PATIENCE) for one in taking]
        assert sorted(map(len, found)) == [0, 1]
        monkeypatch.undo()
        (taken,) = next(one for one in found if one)
        assert taken[0] == job.id
        service.parts.desk.submit(*taken)
        assert service.ended("bob", job.id)["state"] == "answered"


def test_a_take_over_and_a_deleted_account_do_not_wait_for_each_other(
    tmp_path: Path, postgres_url: str, monkeypatch: Any
) -> None:
    """Both lock the questions of an account: in two orders, PostgreSQL had to end one of them."""
    with here(tmp_path, database=postgres_url) as service:
        jobs, store = service.parts.jobs, service.parts.store
        monkeypatch.setattr(service.parts.desk._jobs, "take_over", lambda *_: [])
        asked = (Asked("place", 1, 0.1), Asked("place", 1, 0.2))
        one, two = (jobs.ask("bob", "events", each, None, "dead")[0].id for each in asked)
        with store.writing() as connection:  # the later one in the table was asked before
            connection.execute(update(JOBS).where(JOBS.c.id == two).values(asked=1.0))
        with ThreadPoolExecutor() as pool:
            with store.writing() as connection:
                connection.execute(select(JOBS.c.id).where(JOBS.c.id == one).with_for_update())
                acts = (
                    lambda: jobs.cancel_all("bob"),
                    lambda: type(jobs).take_over(jobs, "me", ()),
                )
                waiting = list[Any]()
                with store.reading() as looking:
                    for act in acts:
                        waiting.append(pool.submit(act))
                        while looking.execute(WAITING).scalar_one() < len(waiting):
                            assert not any(each.done() for each in waiting)
                            looking.execute(select(func.pg_stat_clear_snapshot()))
            _, taken = (each.result(PATIENCE) for each in waiting)
        assert [identity for identity, *_ in taken] == [two, one]
        assert jobs.cancelled("me") == {one, two}


def test_workers_that_were_silent_together_go_on_together(postgres_url: str) -> None:
    """After a pause of the machine each took the other for dead, and waited for its row."""
    store, turns, both = Store(postgres_url), Turns(1, 1.0), Barrier(2)
    schema.create(store)
    jobs = SimpleNamespace(hear=list, cancelled=lambda _: (), take_over=lambda *_: [])
    nothing = {"ended": print, "broke": print, "note": lambda: None}
    desks = [Desk(store, jobs, turns, **nothing) for _ in range(2)]  # type: ignore[arg-type]
    for desk in desks:
        desk._beat()
    with store.writing() as connection:
        connection.execute(update(WORKERS).values(seen=1.0))

    def wait(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("UPDATE service_workers"):
            both.wait(PATIENCE)

    event.listen(Engine, "after_cursor_execute", wait)
    try:
        with ThreadPoolExecutor() as pool:
            for done in [pool.submit(desk._beat) for desk in desks]:
                done.result(PATIENCE)
    finally:
        event.remove(Engine, "after_cursor_execute", wait)
    with store.reading() as connection:
        living = set(connection.execute(select(WORKERS.c.id)).scalars())
    assert living == {desk.worker for desk in desks}
    store.close()
