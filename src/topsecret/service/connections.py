"""Connections that send no whole request: closed after a while, the oldest first where many wait.

Who opens connections and never finishes a request would otherwise use up the files that a process
may have open, and stop the service for everybody.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

PATIENCE = 20.0
"""Seconds for a request to arrive, its body included."""
MOST_UNFINISHED = 400
"""How many connections of one worker process may be without a whole request."""

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Protocol
else:
    _Protocol = AutoHTTPProtocol

_unfinished: OrderedDict[int, ImpatientProtocol] = OrderedDict()


class ImpatientProtocol(_Protocol):
    """HTTP as uvicorn speaks it, with an end for who does not."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody came: a request must follow."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._received()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A part of a request, or the whole of it."""
        before = self.cycle
        super().data_received(data)
        now = self.cycle
        begun_again = now is before and now is not None and now.response_complete
        if now is None or now.more_body or begun_again:
            self._expect()
        else:
            self._received()

    def _expect(self) -> None:
        if self._deadline is not None or self.transport.is_closing():
            return
        self._deadline = self.loop.call_later(PATIENCE, self._give_up)
        _unfinished[id(self)] = self
        if len(_unfinished) > MOST_UNFINISHED:
            next(iter(_unfinished.values()))._give_up()

    def _received(self) -> None:
        _unfinished.pop(id(self), None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._received()
        self.transport.abort()
