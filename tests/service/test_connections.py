"""Connections that wait for their clients: before TLS, before a request, with an unread answer."""

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from serving import PATIENCE

from topsecret.service import connections
from topsecret.service.connections import ImpatientProtocol, OwnTls, over_tls
from topsecret.service.serve import bound

LARGE = 4_000_000
"""Bytes: more than systems keep of an answer that nobody reads, in both directions."""


async def app(scope: Any, receive: Any, send: Any) -> None:
    """A short answer, or a large one."""
    body = bytes(LARGE if scope["path"] == "/large" else 2)
    start = {"type": "http.response.start", "status": 200}
    await send(start | {"headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("certificate")
    key, chain = folder / "key.pem", folder / "chain.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, "-keyout", key, "-out", chain], check=True, capture_output=True)
    return chain, key


class Served:
    """A server in this process."""

    def __init__(self, server: uvicorn.Server, port: int, chain: Path | None) -> None:
        self.server, self.port, self.chain = server, port, chain

    def open(self) -> socket.socket:
        """A connection, and nothing sent."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def asked(self, path: str, times: int = 1) -> socket.socket:
        """A connection on which something was asked, and nothing is read."""
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.settimeout(PATIENCE)
        opened.connect(("127.0.0.1", self.port))
        if self.chain is not None:
            trusted = ssl.create_default_context(cafile=self.chain)
            opened = trusted.wrap_socket(opened, server_hostname="127.0.0.1")
        opened.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * times)
        return opened

    def get(self, path: str) -> httpx.Response:
        scheme = "http" if self.chain is None else "https"
        trusted: Any = True if self.chain is None else ssl.create_default_context(cafile=self.chain)
        address = f"{scheme}://127.0.0.1:{self.port}{path}"
        return httpx.get(address, verify=trusted, timeout=PATIENCE)


@contextmanager
def served(certificate: tuple[Path, Path] | None) -> Iterator[Served]:
    common: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "off"}
    if certificate is None:
        config = uvicorn.Config(app, http=ImpatientProtocol, **common)
    else:
        own = {"ssl_certfile": certificate[0], "ssl_keyfile": certificate[1]}
        config = OwnTls(app, http=over_tls, **own, **common)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    with bound("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        yield Served(server, port, None if certificate is None else certificate[0])
        server.should_exit = True
        thread.join(PATIENCE)


def is_closed(opened: socket.socket) -> bool:
    """Whether the other side ends it, before all of its answer is there."""
    came = 0
    with suppress(ConnectionError, ssl.SSLEOFError):
        while found := opened.recv(65536):
            came += len(found)
    return came < LARGE


def noting_cuts(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a connection was cut off because nobody read its answer."""
    cut_off, close = threading.Event(), connections._unread._close

    def noted(which: int) -> None:
        close(which)
        cut_off.set()

    monkeypatch.setattr(connections._unread, "_close", noted)
    return cut_off


def test_a_handshake_that_never_begins_is_bounded_by_number_and_time(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_UNFINISHED", 20)
    monkeypatch.setattr(connections, "PATIENCE", 10 * PATIENCE)
    monkeypatch.setattr(connections, "HANDSHAKE", 10 * PATIENCE)  # their number closes them
    with served(certificate) as here, ExitStack() as stack:
        assert here.get("/").content == bytes(2)
        waiting = [stack.enter_context(here.open()) for _ in range(60)]
        assert all(is_closed(one) for one in waiting[:40])
        assert here.get("/large").content == bytes(LARGE)
        monkeypatch.setattr(connections, "HANDSHAKE", 0.05)
        late = stack.enter_context(here.open())
        assert is_closed(late)


@pytest.mark.parametrize("own", [False, True])
def test_answers_that_nobody_reads_are_bounded_by_number_and_time(
    own: bool, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_UNREAD", 5)
    monkeypatch.setattr(connections, "READING", 10 * PATIENCE)
    with served(certificate if own else None) as here, ExitStack() as stack:
        unread = [stack.enter_context(here.asked("/large")) for _ in range(15)]
        waiting = here.server.server_state.connections
        deadline = time.monotonic() + PATIENCE
        while len(connections._unread._all) != 5 or len(waiting) != 5:
            assert time.monotonic() < deadline, "they are held"
            time.sleep(0.02)
        assert here.get("/large").content == bytes(LARGE)
        for one in unread:
            one.close()
        # One alone is cut off when it reads nothing for a while.
        while connections._unread._all:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        monkeypatch.setattr(connections, "READING", 0.05)
        cut_off = noting_cuts(monkeypatch)
        late = stack.enter_context(here.asked("/large"))
        assert cut_off.wait(PATIENCE), "it is held"
        assert is_closed(late)


@pytest.mark.parametrize("own", [False, True])
def test_a_second_answer_that_nobody_reads_is_cut_off_too(
    own: bool, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits where the first is read, and is written as soon as that is gone."""
    for name in ("READING", "PATIENCE"):
        monkeypatch.setattr(connections, name, 10 * PATIENCE)
    with served(certificate if own else None) as here, ExitStack() as stack:
        opened = stack.enter_context(here.asked("/large", times=2))
        cut_off = noting_cuts(monkeypatch)
        deadline, came = time.monotonic() + PATIENCE, 0
        while not connections._unread._all:  # the first waits to be read
            assert time.monotonic() < deadline
            time.sleep(0.02)
        monkeypatch.setattr(connections, "READING", 0.05)  # for the second
        while came < LARGE + 100:  # with its head
            came += len(opened.recv(65536))
        waiting = here.server.server_state.connections
        while waiting and not cut_off.is_set():
            assert time.monotonic() < deadline, "it is held"
            time.sleep(0.02)
        assert cut_off.is_set()


@pytest.mark.parametrize("own", [False, True])
def test_of_all_connections_the_most_silent_are_closed(
    own: bool, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_OPEN", 10)
    for name in ("READING", "PATIENCE", "HANDSHAKE"):
        monkeypatch.setattr(connections, name, 10 * PATIENCE)
    with served(certificate if own else None) as here, ExitStack() as stack:
        came: dict[int, Any] = {}  # kept, so that no two have one id
        heard, all_came = connections._open.heard, threading.Event()

        def noted(transport: Any) -> None:
            came[id(transport)] = transport
            heard(transport)
            if len(came) == 30:
                all_came.set()

        monkeypatch.setattr(connections._open, "heard", noted)
        unread = [stack.enter_context(here.asked("/large")) for _ in range(30)]
        assert all_came.wait(PATIENCE)
        assert all(is_closed(one) for one in unread[:15])
        assert here.get("/").content == bytes(2)


class Slow:
    """A transport of which a part is read before each look, until nothing more is."""

    def __init__(self, *left: int) -> None:
        self.left, self.aborted = list(left), False

    def get_write_buffer_size(self) -> int:
        return self.left[0]

    def abort(self) -> None:
        self.aborted = True


def test_who_reads_slowly_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []

    class Loop:
        def call_later(self, _seconds: float, look: Any, *given: Any) -> Any:
            looks.append((look, given))
            return threading.Timer(0, lambda: None)  # it can be cancelled

    monkeypatch.setattr(connections.asyncio, "get_running_loop", Loop)
    waiting, slow = connections.Waiting(lambda: 5, lambda: 1.0), Slow(90)
    waiting.add(slow)  # type: ignore[arg-type]
    for left in (60, 30, 10):
        slow.left = [left]
        look, given = looks[-1]
        look(*given)
        assert not slow.aborted
    look, given = looks[-1]
    look(*given)
    assert slow.aborted
