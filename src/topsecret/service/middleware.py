"""The edge between the network and the application: request ids, headers, limits, logs.

One plain ASGI layer, because every request pays for it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topsecret.errors import LedgerError
from topsecret.service.fair_starts import FairStarts
from topsecret.service.logs import log, where
from topsecret.service.metrics import Metrics
from topsecret.service.problems import unforeseen

API = "/api/v1"
"""Where programs ask. Paths without a version, as 0.1 had them, mean this one."""

LARGEST_BODY = 64 * 1024
Refused = Callable[[str, int, int], Awaitable[None]]
"""Told of who, which entry of the audit trail, and the status with which it was refused."""

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: list[tuple[bytes, bytes]] = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_HSTS = (b"strict-transport-security", b"max-age=31536000")
_PRIVATE = (b"cache-control", b"no-store")
_STATIC = (b"cache-control", b"public, max-age=300")


class Edge:
    """Wraps the application."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, https: bool, prefix: str, refused: Refused
    ) -> None:
        self._app, self._metrics, self._prefix, self._refused = app, metrics, prefix, refused
        self._starts = FairStarts()
        self._headers = [*_HEADERS, _HSTS] if https else _HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._prefix and f"{scope['path']}/".startswith(f"{self._prefix}/"):
            scope["path"] = scope["path"].removeprefix(self._prefix) or "/"
        if scope["path"].startswith("/api/") and not scope["path"].startswith(f"{API}/"):
            scope["path"] = API + scope["path"].removeprefix("/api")
        begun, status = time.perf_counter(), 0
        await self._starts.turn((scope.get("client") or "-")[0])
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                state = scope["state"]
                if status >= 400 and "noted" in state:  # the audit trail has it: it was not done
                    with suppress(LedgerError):
                        await self._refused(state["account"], state["noted"], status)
                headers: list[tuple[bytes, bytes]] = message["headers"]
                if self._prefix:
                    headers[:] = [self._moved(*header) for header in headers]
                headers += self._headers
                headers.append((b"x-request-id", request_id.encode()))
                if not any(name == b"cache-control" for name, _ in headers):
                    static = scope["path"].startswith("/static/")
                    headers.append(_STATIC if static else _PRIVATE)
            await send(message)

        failure: dict[str, Any] = {}
        try:
            if any(name == b"content-length" and _large(value) for name, value in scope["headers"]):
                raise _TooLarge
            await self._app(scope, _bounded(receive), sending)
        except _TooLarge:
            if not status:
                await _plainly(sending, 413, "too_large", "The request is too large.", request_id)
        except Exception as error:
            failure = {"kind": type(error).__name__, "where": where(error)}
            if not status:
                problem = unforeseen()
                await _plainly(sending, 500, problem.error, problem.message, request_id)
        route = getattr(scope.get("route"), "path", "-")
        # The method is the client's text: an invented one is not repeated.
        method = scope["method"] if scope["method"] in METHODS else "-"
        seconds = time.perf_counter() - begun
        self._metrics.request(route, method, status, seconds)
        if "account" in scope["state"]:
            failure = {"account": scope["state"]["account"]} | failure
        log(
            "failure" if "kind" in failure else "request",
            request_id=request_id,
            method=method,
            route=route,
            status=status,
            ms=round(1000 * seconds, 1),
            **failure,
        )

    def _moved(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        """A header; a path to go to is one below the prefix."""
        ours = name == b"location" and value.startswith(b"/") and not value.startswith(b"//")
        return name, self._prefix.encode() + value if ours else value


class _TooLarge(Exception):
    """A body beyond all that is ever needed."""


def _large(length: bytes) -> bool:
    return not length.isdigit() or len(length) > 9 or int(length) > LARGEST_BODY


def _bounded(receive: Receive) -> Receive:
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            raise _TooLarge
        return message

    return receiving


async def _plainly(send: Send, status: int, error: str, message: str, request_id: str) -> None:
    body = json.dumps({"error": error, "message": message, "request_id": request_id}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
