"""Connections that wait for their clients: closed after a while, the oldest first where many do.

Who opens connections and never finishes a handshake or a request, or never reads the answers,
would otherwise use up the files that a process may have open, and stop the service for everybody.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

try:
    import resource
except ImportError:  # elsewhere than on Unix
    resource = None  # type: ignore[assignment]

PATIENCE = 20.0
"""Seconds for a request to arrive, its body included."""
READING = 20.0
"""Seconds for a client to read something of its answer."""
HANDSHAKE = 10.0
"""Seconds for the handshake of TLS, before the request."""
MOST_UNFINISHED = 400
"""How many connections of one worker process may be without a whole request."""
MOST_UNREAD = 100
"""How many connections may have an answer that their clients do not read."""
MOST_OPEN = 2000
"""How many connections there may be; at most half of the files that the process may have open."""

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Protocol
else:
    _Protocol = AutoHTTPProtocol


class Waiting:
    """The connections that wait for one thing, each with its deadline, the oldest first."""

    def __init__(self, most: Callable[[], int], patience: Callable[[], float]) -> None:
        self._most, self._patience = most, patience
        self._all: OrderedDict[int, tuple[asyncio.Transport, asyncio.TimerHandle]] = OrderedDict()

    def add(self, transport: asyncio.Transport) -> None:
        """It waits from now on, if it does not already."""
        if id(transport) not in self._all:
            self._all[id(transport)] = transport, self._timer(transport)
            if len(self._all) > self._most():
                self._close(next(iter(self._all)))

    def remove(self, transport: asyncio.Transport) -> None:
        """It no longer waits."""
        found = self._all.pop(id(transport), None)
        if found is not None:
            found[1].cancel()

    def _timer(self, transport: asyncio.Transport) -> asyncio.TimerHandle:
        left = transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        return loop.call_later(self._patience(), self._look, transport, left)

    def _look(self, transport: asyncio.Transport, before: int) -> None:
        """A slow client reads a part of its answer all the same."""
        if transport.get_write_buffer_size() < before:
            self._all[id(transport)] = transport, self._timer(transport)
        else:
            self._close(id(transport))

    def _close(self, which: int) -> None:
        transport, timer = self._all.pop(which)
        timer.cancel()
        transport.abort()


_unfinished = Waiting(lambda: MOST_UNFINISHED, lambda: PATIENCE)
_unread = Waiting(lambda: MOST_UNREAD, lambda: READING)


class Open:
    """All connections that were accepted; who was heard of last comes last, and stays longest."""

    def __init__(self) -> None:
        self._all: OrderedDict[int, asyncio.Transport] = OrderedDict()

    def heard(self, transport: asyncio.Transport) -> None:
        """It came, or sent something."""
        if transport.is_closing() and id(transport) not in self._all:
            return
        self._all[id(transport)] = transport
        self._all.move_to_end(id(transport))
        if len(self._all) > most_open():
            self._all.popitem(last=False)[1].abort()

    def remove(self, transport: asyncio.Transport) -> None:
        """It is gone."""
        self._all.pop(id(transport), None)


def most_open() -> int:
    """How many connections the process may have; ``serve`` lets it have many files."""
    if resource is None:
        return MOST_OPEN
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_OPEN if files == resource.RLIM_INFINITY else min(MOST_OPEN, files // 2)


_open = Open()


class ImpatientProtocol(_Protocol):
    """HTTP as uvicorn speaks it, with an end for who does not."""

    accepted: asyncio.Transport | None = None
    """The connection as it was accepted, where TLS lies between."""

    def connection_made(self, transport: Any) -> None:
        """Somebody came: a request must follow."""
        super().connection_made(transport)
        if self.accepted is not None:
            _unfinished.remove(self.accepted)
        else:
            transport.set_write_buffer_limits(high=0)
            _open.heard(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        _open.remove(self.transport)
        _unfinished.remove(self.transport)
        _unread.remove(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A part of a request, or the whole of it."""
        _open.heard(self.accepted or self.transport)
        before = self.cycle
        super().data_received(data)
        now = self.cycle
        begun_again = now is before and now is not None and now.response_complete
        if now is None or now.more_body or begun_again:
            self._expect()
        else:
            _unfinished.remove(self.transport)

    def pause_writing(self) -> None:
        """The system takes no more of an answer: its client must read."""
        super().pause_writing()
        if self.accepted is None:
            _unread.add(self.transport)

    def resume_writing(self) -> None:
        """It was sent."""
        _unread.remove(self.transport)
        super().resume_writing()

    def _expect(self) -> None:
        if not self.transport.is_closing():
            _unfinished.add(self.transport)


class _Handshake(SSLProtocol):
    """TLS beneath HTTP: a connection counts from the moment at which it is accepted."""

    max_size = 16 * 1024  # of its buffer, which is 256 KiB for each connection otherwise

    def __init__(self, loop: asyncio.AbstractEventLoop, above: Any, context: ssl.SSLContext):
        more = {"server_side": True, "ssl_handshake_timeout": HANDSHAKE}
        super().__init__(loop, above, context, None, **more)  # type: ignore[arg-type]
        self._above = above
        self._accepted: Any = None

    def connection_made(self, transport: Any) -> None:
        transport.set_write_buffer_limits(high=0)
        self._accepted = self._above.accepted = transport
        _open.heard(transport)
        _unfinished.add(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        for kept in (_open, _unfinished, _unread):
            kept.remove(self._accepted)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        _unread.add(self._accepted)

    def resume_writing(self) -> None:
        _unread.remove(self._accepted)  # first: what waits above may pause it at once
        super().resume_writing()


class OwnTls(uvicorn.Config):
    """As uvicorn is told of a certificate; the connections that it accepts are ours, with TLS."""

    context: ssl.SSLContext | None = None

    def load(self) -> None:
        """Make what a worker process needs."""
        super().load()
        self.context, self.ssl = self.ssl, None


def over_tls(config: OwnTls, _loop: asyncio.AbstractEventLoop | None = None, **more: Any) -> Any:
    """The protocol of a connection that was just accepted."""
    assert config.context is not None  # it is loaded
    loop = _loop or asyncio.get_running_loop()
    above = ImpatientProtocol(config=config, _loop=loop, **more)
    return _Handshake(loop, above, config.context)
