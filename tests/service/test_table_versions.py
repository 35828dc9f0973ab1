"""Where a version may be read from, whatever a database is called, and for how long."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from topsecret.errors import Closing, DataIndependentFailure
from topsecret.service.databases import Databases, named
from topsecret.service.datasets import Dataset
from topsecret.service.jobs.release_schedule import TIME_LIMIT, Turn, Turns
from topsecret.service.table_versions import VersionFrom, version_now


def test_events_are_recognised_under_another_name_of_their_database(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(tmp_path)
    url = f"sqlite:///{tmp_path}/shop.db"
    names = [f"shop={url}", f"copy=sqlite:///{tmp_path}/linked/shop.db"]
    databases = Databases(named([*names, f"other=sqlite:///{tmp_path}/other.db"]))
    for place in (url, f"sqlite:///{tmp_path}/other.db"):
        engine = create_engine(place)
        with engine.begin() as connection:
            for table in ("visits", "logins"):
                connection.execute(text(f"CREATE TABLE {table} (who_{table} TEXT, at TEXT)"))
                connection.execute(text(f"INSERT INTO {table} VALUES ('ann', '2026')"))
        engine.dispose()
    for other, same in (
        (("copy", "visits"), True),
        (("copy", "main.visits"), True),
        (("not any more", "visits"), True),
        (("copy", "logins"), False),
        (("shop", "main.visits"), False),
        (("other", "visits"), False),
        ((f"{tmp_path}/shop.db", None), False),
    ):
        assert databases.may_be_same(("shop", "visits"), other) is same, other
        assert databases.may_be_same(other, ("shop", "visits")) is same, other
    assert not databases.may_be_same(("shop", "a.visits"), ("copy", "b.visits"))
    read = VersionFrom("logins", "at", trusted=True)
    visits = Dataset("visits", "V", "shop", "who_visits", ("at",), None, 1e-6, "visits")
    visits = replace(visits, version_from=read)
    logins = replace(visits, name="logins", table="logins", person="who_logins", version_from=None)
    elsewhere = replace(logins, source="other")
    assert version_now(visits, [visits, elsewhere], databases) == '["logins", "at"]\n2026'
    for source in ("shop", "copy", "not any more"):
        for table in ("logins", "main.logins"):
            known = [visits, replace(logins, source=source, table=table)]
            with pytest.raises(DataIndependentFailure, match="would be data"):
                version_now(visits, known, databases)


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("postgresql://a@host/shop", "postgresql+psycopg://b@127.0.0.1:5432/shop", True),
        ("postgresql://host/shop", "postgresql://host/bank", False),
        ("postgresql://host", "postgresql://host/bank", True),
        ("postgresql://host/shop", "postgresql:///bank?service=shop", True),
        ("postgresql://host/shop", "sqlite:///shop", False),
        ("sqlite:///shop", "sqlite:///x/../shop", True),
        ("sqlite:///shop", "sqlite:///bank", False),
        ("sqlite:///shop", "sqlite:///file:shop?uri=true", True),
    ],
)
def test_two_databases_are_one_unless_they_are_seen_not_to_be(
    one: str, other: str, may: bool
) -> None:
    databases = Databases((("one", one), ("other", other)))
    assert databases.may_be_one("one", "other") is databases.may_be_one("other", "one") is may


def test_the_time_limit_runs_while_a_version_is_read() -> None:
    turn = Turn(Turns(1, 0.01, limit=-1.0))
    with turn:
        turn.look_at_the_clock()
        assert not turn.stop.asked.is_set()
        with suppress(Closing), turn.aside():
            turn.look_at_the_clock()
        assert turn.stop.why == TIME_LIMIT
