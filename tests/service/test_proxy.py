"""The proxy of docs/service.md: nginx with the page's configuration, before a real service."""

import re
import select
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx
import pytest
from serving import BRIEF, PASSWORD, PATIENCE, PLACES, Server, write_events
from test_coming_in import form_token, log_in
from test_page import PAGE, PEOPLE, WALK, steps

import topsecret
from pages import blocks
from topsecret.errors import ServiceError

(BLOCK,) = blocks("nginx", PAGE)
NAME, SERVICE, FOLDER = "topsecret.example.org", "127.0.0.1:8000", "/etc/ssl/"
MOST_AT_ONCE, LARGEST = 50, 64 * 1024
ALONE = """
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
"""
"""What Debian's own configuration says around the page's, for a folder of the test's."""


class Proxied(Server):
    """``topsecret serve --https``, to which the proxy comes by HTTP."""

    def _ready(self) -> None:
        self.address = self.address.replace("https:", "http:")
        super()._ready()


def adapted(block: str, port: int, upstream: str, folder: Path) -> str:
    """The page's configuration with the test's names, ports and folders."""
    changes = {"listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;", NAME: "127.0.0.1"}
    changes |= {f"http://{SERVICE};": f"http://{upstream};", FOLDER: f"{folder}/"}
    for theirs, ours in changes.items():
        assert theirs in block, f"{theirs} is not on the page"
        block = block.replace(theirs, ours)
    return block


def hurried(block: str) -> str:
    """The same server, impatient: seconds instead of what the page says."""
    _, _, server = block.partition("\n\n")
    return re.sub(r"(_timeout) \d+s;", r"\1 1s;", server)


@dataclass(frozen=True)
class Front:
    """The address by which browsers come, and the certificate that they were given."""

    port: int
    hurried: int
    chain: Path
    silent: socket.socket

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.chain)

    def browser(self, come_from: str = "127.0.0.1") -> httpx.Client:
        """A client at some address of this machine; forms say which page they are from."""
        tls = httpx.HTTPTransport(
            verify=self.trusted, local_address=come_from, retries=5, limits=BRIEF
        )
        headers = {"accept": "text/html", "origin": self.address}
        return httpx.Client(base_url=self.address, transport=tls, timeout=PATIENCE, headers=headers)

    def open(self, port: int, come_from: str = "127.0.0.1") -> ssl.SSLSocket:
        """A connection after its handshake."""
        plain = socket.create_connection(
            ("127.0.0.1", port), timeout=PATIENCE, source_address=(come_from, 0)
        )
        return self.trusted.wrap_socket(plain, server_hostname="127.0.0.1")


def _free() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Whether the process comes to listen there before it ends."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE):
            return process.poll() is None
        time.sleep(0.02)
    return False


@contextmanager
def proxy(folder: Path, upstream: str) -> Iterator[Front]:
    """Nginx as the page has it, and at a second port the same in a hurry, before nobody."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    assert program, "nginx is missing; run make test, which installs it"
    certificate = next(step for step in steps(WALK) if step.startswith("openssl"))
    subprocess.run(["bash", "-euc", certificate], check=True, capture_output=True, cwd=folder)
    log = folder / "nginx.log"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for _ in range(5):  # another process may be given a port before nginx takes it
            front = Front(_free(), _free(), folder / "topsecret.pem", silent)
            nobody = f"127.0.0.1:{silent.getsockname()[1]}"
            page = adapted(BLOCK, front.port, upstream, folder)
            quick = hurried(adapted(BLOCK, front.hurried, nobody, folder))
            (folder / "nginx.conf").write_text(f"{ALONE}{page}\n{quick}}}\n")
            command = [program, "-e", "error.log", "-p", str(folder), "-c", "nginx.conf"]
            with log.open("w") as out:
                process = subprocess.Popen(command, stdout=out, stderr=out)
            try:
                if _listens(front.port, process) and _listens(front.hurried, process):
                    yield front
                    return
            finally:
                process.terminate()
                process.wait(PATIENCE)
        raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Front]]:
    home, folder = (tmp_path_factory.mktemp(name) for name in ("home", "nginx"))
    server = Proxied(home, "--https", "--tick", "0.1")
    try:
        with proxy(folder, server.address.removeprefix("http://")) as front:
            yield server, front
    finally:
        assert server.stop() == 0


@pytest.fixture(scope="module")
def front(served: tuple[Server, Front]) -> Front:
    return served[1]


@pytest.fixture(scope="module")
def owner(served: tuple[Server, Front]) -> str:
    """The key of the owner, who opened the printed link with the proxy's name in it."""
    server, front = served
    with front.browser() as web:
        page = web.get(f"/setup{server.set_up_link.partition('/setup')[2]}").text
        olga = {"name": "olga", "password": PASSWORD, "again": PASSWORD}
        olga |= {name: form_token(page, name) for name in ("token", "visit")}
        assert web.post("/setup", data=olga).headers["location"] == "/owner"
        headers = {"x-csrf-token": form_token(web.get("/account").text, "csrf")}
        made = web.post("/api/v1/keys", json={"label": "all"}, headers=headers)
        return str(made.json()["key"])


def test_pages_come_by_tls_and_a_log_in_gives_secure_cookies(front: Front, owner: str) -> None:
    assert owner
    with front.browser("127.0.0.2") as web:
        page = web.get("/login")
        assert page.status_code == 200
        assert "max-age" in page.headers["strict-transport-security"]
        (style,) = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page.text)[:1]
        assert web.get(style).status_code == 200
        web.headers["x-forwarded-proto"] = "http"  # a client's word that counts for nothing
        assert log_in(web, "olga", PASSWORD).headers["location"] == "/"
        assert [cookie.name for cookie in web.cookies.jar if not cookie.secure] == []
        assert web.get("/api/v1/me").json() == {"name": "olga", "role": "owner"}
        web.headers["origin"] = "https://elsewhere.example.org"
        assert log_in(web, "olga", PASSWORD).status_code == 403


def test_a_question_is_answered_through_it(
    served: tuple[Server, Front], owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, front = served
    write_events(server.folder / "files" / "events.csv", PLACES)
    new = {"name": "events", "title": "E", "file": "events.csv", "person": "user"}
    headers = {"authorization": f"Bearer {owner}"}
    with front.browser("127.0.0.3") as web:
        body = new | {"columns": ["place"], "epsilon": 4}
        assert web.post("/api/v1/datasets", json=body, headers=headers).status_code == 201
        share = {"analyst": "olga", "epsilon": 4}
        path = "/api/v1/datasets/events/allowances"
        assert web.post(path, json=share, headers=headers).status_code == 200
    service = replace(topsecret.connect(front.address, owner), patience=PATIENCE)
    with pytest.raises(
        ServiceError, match=r"a certificate that is not trusted here.*SSL_CERT_FILE"
    ):
        service.datasets()
    assert "SSL_CERT_FILE=$PWD/topsecret.pem" in PEOPLE
    monkeypatch.setenv("SSL_CERT_FILE", str(front.chain))
    answer = service.top_k("events", item="place", k=1, epsilon=1.0, wait=PATIENCE)
    assert answer.items == ("Harbour",)


def test_nobody_has_an_address_of_their_own_making(front: Front, owner: str) -> None:
    """Guesses from one address are counted together, whatever it says that it is."""
    assert owner

    def guess(come_from: str, number: int) -> int:
        name = f"nobody{number}"  # each name has tries of its own
        forged = {"x-forwarded-for": f"10.0.0.{number}", "x-real-ip": f"10.0.0.{number}"}
        forged |= {"forwarded": f"for=10.0.0.{number}"}
        with front.browser(come_from) as web:
            visit = form_token(web.get("/login").text, "visit")
            form = {"name": name, "password": "guessed", "visit": visit}
            return web.post("/login", data=form, headers=forged).status_code

    # A try comes back every six seconds: one after the other, a slow machine would never end them.
    with ThreadPoolExecutor(25) as pool:
        replies = list(pool.map(partial(guess, "127.0.0.4"), range(25)))
    assert set(replies) == {401, 429}
    assert replies.count(401) >= 10
    assert guess("127.0.0.5", 1) == 401


def test_a_body_beyond_64k_is_refused(front: Front) -> None:
    def sent(size: int) -> httpx.Response:
        with front.browser("127.0.0.6") as web:
            return web.post("/api/v1/keys", content=b"x" * size)

    assert "client_max_body_size 64k;" in BLOCK
    refused = sent(LARGEST + 1)
    assert (refused.status_code, "nginx" in refused.text) == (413, True)
    passed = sent(LARGEST)
    assert passed.status_code in (401, 403)
    assert passed.json()["request_id"]


def test_one_address_has_so_many_requests_under_way(front: Front) -> None:
    assert f"limit_conn visitors {MOST_AT_ONCE};" in BLOCK
    head = b"POST /login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n"
    with ExitStack() as stack, front.browser("127.0.0.8") as another:
        opened = [
            stack.enter_context(front.open(front.port, "127.0.0.7"))
            for _ in range(MOST_AT_ONCE + 1)
        ]
        for one in opened:
            one.sendall(head)  # and no body: the request is under way
        (refused,), _, _ = select.select(opened, [], [], PATIENCE)
        assert refused.recv(100).startswith(b"HTTP/1.1 503 ")
        assert another.get("/api/v1/health").json() == {"status": "ok"}


def test_what_does_not_end_is_ended(front: Front) -> None:
    """After what the page says; here the same lines say a second."""
    assert re.findall(r"(\w+_timeout) (\d+)s;", BLOCK) == [
        ("client_header_timeout", "20"),
        ("client_body_timeout", "20"),
        ("proxy_read_timeout", "60"),
    ]
    line, host = b"POST /login HTTP/1.1\r\n", b"host: 127.0.0.1\r\n"

    def comes(request: bytes) -> bytes:
        """All that is said until the connection is closed."""
        with front.open(front.hurried) as opened:
            opened.sendall(request)
            return b"".join(iter(lambda: opened.recv(65536), b""))

    def before_tls() -> bytes:
        address = ("127.0.0.1", front.hurried)
        with socket.create_connection(address, timeout=PATIENCE) as opened:
            return opened.recv(65536)

    with ThreadPoolExecutor(4) as pool:
        handshake = pool.submit(before_tls)
        half_a_head = pool.submit(comes, line)
        half_a_body = pool.submit(comes, line + host + b"content-length: 9\r\n\r\nhalf")
        asked = pool.submit(comes, b"GET / HTTP/1.1\r\nconnection: close\r\n" + host + b"\r\n")
        assert handshake.result() == b""
        # Nginx says nothing, or, of a head that has come, that it was too late.
        for late in (half_a_head, half_a_body):
            assert late.result()[:13] in (b"", b"HTTP/1.1 408 ")
        assert asked.result().startswith(b"HTTP/1.1 504 ")
