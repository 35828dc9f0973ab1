"""Services to test: in this process, or as ``topsecret serve`` in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from sqlalchemy import create_engine, text

from topsecret.service.app import create_app
from topsecret.service.connections import ImpatientProtocol
from topsecret.service.datasets import NewDataset
from topsecret.service.serve import bound
from topsecret.service.settings import Settings
from topsecret.service.state import Parts

PATIENCE = 600.0
BRIEF = httpx.Limits(keepalive_expiry=2)
"""Well below the service's own 5 s, so that no request meets a connection that is being closed."""
PASSWORD = "correct horse battery"
SHOP = "shop-of-the-operator.db"
SOURCES = Path(__file__).parents[2] / "src"


def write_events(path: Path, counts: dict[str, int], more: str = "") -> Path:
    """A file in which that many persons have each place; everybody likes one colour."""
    rows = ["user,place,colour"]
    person = 0
    for place, count in counts.items():
        for _ in range(count):
            rows.append(f"u{person},{place},{'red' if person % 3 else 'blue'}")
            person += 1
    path.write_text("\n".join(rows) + "\n" + more, encoding="utf-8")
    return path


PLACES = {"Harbour": 900, "Market": 700, "Library": 500, "Castle": 300} | {
    f"Corner {number}": 3 for number in range(300)
}


def write_table(url: str, counts: dict[str, int], *more: tuple[str, str]) -> None:
    """A table ``visits`` in which that many persons have each place."""
    engine = create_engine(url)
    people = [place for place, count in counts.items() for _ in range(count)]
    rows = [{"who": f"u{person}", "place": place} for person, place in enumerate(people)]
    rows += [{"who": who, "place": place} for who, place in more]
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE visits (who TEXT, place TEXT)"))
        connection.execute(text("INSERT INTO visits VALUES (:who, :place)"), rows)
    engine.dispose()


def settings(folder: Path, **changes: Any) -> Settings:
    files = folder / "files"
    files.mkdir(exist_ok=True)
    defaults: dict[str, Any] = {
        "sources": (("shop", f"sqlite:///{folder / SHOP}"),),
        "tick": 0.05,
        "requests_per_minute": 10**6,
        "questions_per_minute": 10**6,
        "plans_per_minute": 10**6,
        "tries_per_minute": 10**6,
        "grace": PATIENCE,
    }
    return Settings(home=folder, files=(files,), **(defaults | changes))


def populate(parts: Parts, folder: Path, *, epsilon: float = 4.0) -> None:
    """An owner, two analysts, three datasets: ``events`` for both, the others for bob alone.

    ``metered`` has a fixed price, ``visits`` is a table of a database.
    """
    write_table(f"sqlite:///{folder / SHOP}", PLACES)
    write_events(folder / "files" / "events.csv", PLACES)
    parts.accounts.add("olga", "owner", PASSWORD)
    for name in ("ann", "bob"):
        parts.accounts.add(name, "analyst", PASSWORD)
    registered = {"file": "events.csv", "person": "user", "cap": None, "delta": 1e-5}
    parts.datasets.register(
        NewDataset("events", "Events", columns=("place", "colour"), epsilon=epsilon, **registered)  # type: ignore[arg-type]
    )
    parts.datasets.register(
        NewDataset(
            "metered",
            "Metered events",
            columns=("place",),
            epsilon=4.0,
            queries=5,
            picks=20,
            **registered,  # type: ignore[arg-type]
        )
    )
    parts.datasets.register(
        NewDataset(
            "visits",
            "Visits",
            "",
            "who",
            ("place",),
            None,
            4.0,
            1e-5,
            source="shop",
            table="visits",
        )
    )
    parts.datasets.allow("visits", "bob", {"epsilon": 4.0})
    parts.datasets.allow("events", "ann", {"epsilon": epsilon})
    parts.datasets.allow("events", "bob", {"epsilon": epsilon})
    parts.datasets.allow("metered", "bob", {"queries": 5, "picks": 20})


@dataclass
class Here:
    """A service in this process, with a client for everybody."""

    client: httpx.Client
    parts: Parts
    keys: dict[str, str]

    @property
    def address(self) -> str:
        return str(self.client.base_url).rstrip("/")

    def call(self, who: str | None, method: str, path: str, body: Any = None) -> httpx.Response:
        headers = {} if who is None else {"authorization": f"Bearer {self.keys[who]}"}
        more = {} if body is None else {"json": body}
        return self.client.request(method, path, headers=headers, follow_redirects=False, **more)

    def answered(self, who: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask and wait for the end."""
        asked = self.call(who, "POST", path, body)
        assert asked.status_code in (200, 202), asked.text
        return self.ended(who, asked.json()["id"])

    def ended(
        self, who: str, identity: str, pause: float = 0.02, clock: "Clock | None" = None
    ) -> dict[str, Any]:
        """The job once it has ended; a ``clock`` of the test's goes on until then."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            job: dict[str, Any] = self.call(who, "GET", f"/api/answers/{identity}").json()
            if job["state"] != "working":
                return job
            if clock is not None:
                clock.advance(1.0)
            time.sleep(pause)
        raise AssertionError("the question did not end")


class Clock:
    """A clock that stands still until the test moves it.

    However slow the machine is, what a tick holds back is held back until then.
    """

    def __init__(self) -> None:
        self._now = 60.0 * (time.time() // 60)  # on a tick
        self._moved = threading.Condition()

    def time(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        with self._moved:
            until = self._now + seconds
            assert self._moved.wait_for(lambda: self._now >= until, PATIENCE)

    def advance(self, seconds: float) -> None:
        with self._moved:
            self._now += seconds
            self._moved.notify_all()


@contextmanager
def here(folder: Path, **changes: Any) -> Iterator[Here]:
    app = create_app(settings(folder, **changes))
    parts: Parts = app.state.parts
    populate(parts, folder)
    keys = {name: parts.accounts.new_key(name, "tests") for name in ("olga", "ann", "bob")}
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        log_config=None,
        access_log=False,
        timeout_keep_alive=int(PATIENCE),  # else it closes just when a slow test asks again
    )
    server = uvicorn.Server(config)
    with bound("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            assert client.get("/api/health").status_code == 200
            yield Here(client, parts, keys)
        server.should_exit = True
        thread.join(PATIENCE)


class Server:
    """``topsecret serve`` as users run it."""

    def __init__(self, folder: Path, *arguments: str, environment: dict[str, str] | None = None):
        self.folder = folder
        self.log = folder / "log.txt"
        self._begun = len(self.log.read_text(encoding="utf-8")) if self.log.exists() else 0
        files = folder / "files"
        files.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "topsecret", "serve", "--port", "0", "--home"]
        command += [str(folder), "--files", str(files), *arguments]
        more = {"PYTHONPATH": str(SOURCES), "PYTHONUNBUFFERED": "1"} | (environment or {})
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | more, start_new_session=True
            )
        try:
            self.address = self._printed(r"topsecret serves (\S+)")
            self._ready()
        except BaseException:
            self.stop(signal.SIGKILL)
            raise

    def _printed(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = re.findall(pattern, self.log.read_text(encoding="utf-8")[self._begun :])
            if found:
                return str(found[-1])
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            time.sleep(0.05)
        raise AssertionError("the service did not start")

    def _ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.address}/api/health", timeout=30).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the service does not answer")

    @property
    def set_up_link(self) -> str:
        return self._printed(r"(\S+/setup\?token=\S+)")

    @property
    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        names = {int(pid): Path(f"/proc/{pid}/cmdline").read_text() for pid in children.split()}
        return [pid for pid, name in names.items() if "resource_tracker" not in name]

    def lines(self) -> list[dict[str, Any]]:
        text = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in text if line.startswith("{")]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            if how == signal.SIGKILL:
                os.killpg(self.process.pid, how)
            else:
                self.process.send_signal(how)
        return self.process.wait(PATIENCE)
