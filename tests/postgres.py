"""A real PostgreSQL of the tests' own: a cluster in a temporary folder, reached by its socket.

``postgres_url`` is a fresh, empty database for each test; ``postgres_server`` is the server
itself, shared by the tests of one process; a test that kills its server makes a ``Server`` for
itself. ``make test`` installs PostgreSQL where it is missing.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEBIAN = Path("/usr/lib/postgresql")
PATIENCE = 600.0
SETTINGS = {
    "listen_addresses": "",  # its socket is its only door
    "max_connections": "120",
    "shared_buffers": "16MB",
    "fsync": "on",
    "logging_collector": "off",
}


def program(name: str) -> str:
    """One of PostgreSQL's programs; Debian keeps them out of the path."""
    versions = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which(name)
    if found is None:
        pytest.fail(f"{name} of PostgreSQL is missing; run make test, which installs it")
    return found


class Server:
    """A PostgreSQL server that can be started, stopped, killed and started again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root: then an unprivileged user runs it.
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            names = {entry.pw_name: entry for entry in pwd.getpwall()}
            entry = names.get("postgres") or names["nobody"]
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            self._as = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        initdb = [program("initdb"), "--pgdata", str(self.folder / "data"), "--username=tests"]
        self._run([*initdb, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
        self.start()

    def _run(self, command: list[str]) -> None:
        subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL, check=True, **self._as)

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [program("postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                # Also after a kill: orphans of the old server may still hold its memory.
                with self.log.open("ab") as log:
                    self._process = subprocess.Popen(
                        command, cwd=self.folder, stdout=log, stderr=log, **self._as
                    )
            if self._answers():
                return
            time.sleep(0.05)
        pytest.fail(f"PostgreSQL did not start: {self.log.read_text()[-2000:]}")

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.conninfo("postgres"), connect_timeout=60).close()
        except psycopg.OperationalError:
            return False
        return True

    def conninfo(self, database: str) -> str:
        """How psycopg reaches a database."""
        return f"host={self.folder} user=tests dbname={database}"

    def url(self, database: str) -> str:
        """How SQLAlchemy reaches a database."""
        return f"postgresql+psycopg://tests@/{database}?host={self.folder}"

    def create_database(self) -> str:
        """A new empty database; its name."""
        import psycopg

        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database and whoever is connected to it."""
        import psycopg

        with psycopg.connect(self.conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End it and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # "fast": disconnects clients
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=PATIENCE)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A running server, started by the first test that asks."""
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """The SQLAlchemy address of an empty database that only this test uses."""
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)
