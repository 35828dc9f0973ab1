"""Stored answers to those who were recognised a moment ago, before the framework is troubled.

Programs look at the same answers again and again, and an answer never changes. All other requests,
the refusals among them, go on to the route, which has the same rules.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from topsecret.service.api import api
from topsecret.service.auth.dependencies import READING, presented
from topsecret.service.auth.recognised import Kind
from topsecret.service.middleware import API
from topsecret.service.state import Parts

_BEFORE = f"{API}/answers/"
_ROUTE = next(route for route in api.routes if getattr(route, "name", "") == "get_answer")


class StoredAnswers:
    """Wraps the application, inside the edge, which counts and logs these requests, too."""

    def __init__(self, app: ASGIApp, *, parts: Parts) -> None:
        self._app, self._parts = app, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        body = self._body(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        if body is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = _ROUTE
        headers = [
            (b"content-length", str(len(body)).encode()),
            (b"content-type", b"application/json"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _body(self, scope: Scope) -> bytes | None:
        """The answer, where nothing has to be looked up to know that it may be shown."""
        path: str = scope["path"]
        stored = self._parts.remembered.get(path.removeprefix(_BEFORE))
        if stored is None or not path.startswith(_BEFORE):
            return None
        secret, is_key = presented(Request(scope))
        kind: Kind = "key" if is_key else "session"
        person = self._parts.accounts.recognised.by(kind, secret) if secret else None
        if person is None or person.first or person.scope not in READING:
            return None
        if stored.user != person.name and not person.sees(stored.dataset):
            return None
        if self._parts.limits.wait("request", person.name):
            return None  # nothing was taken; the route says for how long to wait
        scope["state"]["account"] = person.name
        return stored.body
