"""Run the service: bind the port, print where it is, start the workers."""

from __future__ import annotations

import errno
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import uvicorn
from uvicorn.supervisors import Multiprocess

from topsecret.errors import InvalidParameter
from topsecret.ledger import Ledger
from topsecret.ledger.store import Store
from topsecret.service import schema
from topsecret.service.app import ENVIRONMENT
from topsecret.service.audit import Trail
from topsecret.service.auth.accounts import Accounts
from topsecret.service.connections import ImpatientProtocol, OwnTls, over_tls
from topsecret.service.logs import configure
from topsecret.service.metrics import share_between_workers
from topsecret.service.settings import Settings
from topsecret.service.witness import Witness
from topsecret.sources.memory import memory

try:
    import resource
except ImportError:  # elsewhere than on Unix
    resource = None  # type: ignore[assignment]

Say = Callable[[str], None]
MOST_FILES = 16384


class Certificate(NamedTuple):
    """What the service shows to whoever comes by HTTPS, as files."""

    chain: Path
    key: Path


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; that the port is taken is said in one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By name: asyncio sends small answers at once only on sockets that say they are TCP. Without,
    # every answer but a connection's first waits 40 ms for the other side's acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
    except (OSError, OverflowError) as error:
        listening.close()
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "is in use" if taken else "cannot be bound"
        raise InvalidParameter(
            f"port {port} of {host} {reason}; choose another with --port"
        ) from None
    listening.set_inheritable(True)
    return listening


def address(host: str, listening: socket.socket, https: bool) -> str:
    """The address to open in a browser on this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http{'s' if https else ''}://{shown}:{listening.getsockname()[1]}"


def prepare(settings: Settings, base: str, say: Say) -> None:
    """The tables and, on the first run, a link that makes the owner's account."""
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    witness = Witness(settings.witness_file)
    witness.check_folder()
    if settings.database and "://" not in settings.database and not Path(settings.place).exists():
        # What was given may hold a password: it is not repeated.
        raise InvalidParameter(
            "--database is an address, postgresql://user@host/database; for a SQLite file leave "
            "it out, and name the file's folder by --home"
        )
    store = Store(settings.place)
    schema.create(store)
    with closing(Ledger(settings.place)) as ledger:
        witness.check(ledger, Trail(store))
    accounts = Accounts(store)
    if accounts.empty:
        say("This is the first run. Make the owner's account here; the link works once:")
        say(f"  {base}{settings.prefix}/setup?token={accounts.new_set_up_token()}")
    store.close()


def share_memory(engines: int) -> None:
    """Each engine's part of the machine or container, unless the operator said otherwise.

    One engine alone would take four fifths, and several together would be killed. A size that the
    engines cannot keep to is refused.
    """
    if memory() is None and "SC_PHYS_PAGES" in os.sysconf_names:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        machine = min([pages, *container_limits()])
        least = min(256, machine // 10**6)
        os.environ["TOPSECRET_MEMORY"] = f"{max(least, machine * 4 // 5 // engines // 10**6)}MB"


def container_limits(root: Path = Path("/")) -> list[int]:
    """What the control groups of this process may use, in bytes."""
    found: list[int] = []
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            top = root / "sys/fs/cgroup" / controllers
            group = top / path.lstrip("/")
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            for folder in (group, *group.parents):
                with suppress(OSError, ValueError):
                    found.append(int((folder / name).read_text()))
                if folder == top:
                    break
    return found


def _open_many_files() -> None:
    """Every connection is a file: as many as the system lets this process have."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def certified(certificate: Path | None, key: Path | None) -> Certificate | None:
    """Certificate and key, when they can be used together; None when there are none."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InvalidParameter("--certificate and --certificate-key belong together")
    try:
        # An empty password instead of a question at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError:  # SSLError among them
        raise InvalidParameter(
            f"--certificate {certificate} and --certificate-key {key} must be PEM files, the key "
            "without a password, that belong together"
        ) from None
    return Certificate(certificate.absolute(), key.absolute())


def run(
    settings: Settings, listening: socket.socket, workers: int, own: Certificate | None = None
) -> None:
    """Serve until a signal ends it: questions under way finish, or stay in doubt."""
    os.environ[ENVIRONMENT] = settings.to_json()
    configure()
    config = (uvicorn.Config if own is None else OwnTls)(
        "topsecret.service.app:from_environment",
        factory=True,
        http=ImpatientProtocol if own is None else over_tls,  # type: ignore[arg-type]  # it is called
        ws="none",
        workers=workers,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=int(settings.grace) + 5,
        timeout_worker_healthcheck=30,
        ssl_certfile=None if own is None else own.chain,
        ssl_keyfile=None if own is None else own.key,
    )
    _open_many_files()
    server = uvicorn.Server(config)
    if workers == 1:
        for ending in (signal.SIGINT, signal.SIGTERM):
            # After a graceful stop the server raises the signal again: it has been served.
            signal.signal(ending, lambda *_: None)
        server.run(sockets=[listening])
    else:
        with share_between_workers():
            Multiprocess(config, sockets=[listening]).run()
    sys.stderr.flush()
