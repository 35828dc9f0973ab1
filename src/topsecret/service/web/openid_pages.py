"""Coming in by way of a provider of OpenID Connect."""

from __future__ import annotations

import base64
import json
import time
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from topsecret.service.auth import credentials
from topsecret.service.auth.dependencies import address, limited, take_all
from topsecret.service.auth.openid import Attempt, OpenId, refused
from topsecret.service.problems import Problem, of_status
from topsecret.service.state import blocking, parts
from topsecret.service.web.account_pages import agent, inside, local

openid_pages = APIRouter(include_in_schema=False)
ATTEMPT = "topsecret_openid"
SECONDS = 600
Sent = Annotated[str, Query(max_length=4000)]


@openid_pages.get("/login/openid")
async def leave(request: Request, to: Sent = "") -> Response:
    """To the provider."""
    limited(request, "request", f"openid from {address(request)}")
    provider, service, attempt = _provider(request), parts(request), Attempt.new()
    async with service.signing_in.turn(address(request)):
        where = await blocking(partial(provider.address, attempt, _back(request)))
    text = json.dumps(asdict(attempt) | {"to": local(to), "ends": time.time() + SECONDS})
    kept = base64.urlsafe_b64encode(text.encode()).decode()
    signed = await blocking(partial(service.devices.sign, kept))
    response = RedirectResponse(where, 303)
    response.set_cookie(
        ATTEMPT,
        f"{kept}.{signed}",
        max_age=SECONDS,
        httponly=True,
        samesite="lax",  # the provider's redirect brings it back
        secure=service.settings.https,
    )
    return response


@openid_pages.get("/login/openid/back")
async def come_back(
    request: Request, state: Sent = "", code: Sent = "", iss: Sent = ""
) -> Response:
    """From the provider, with a code that stands for who it is."""
    provider, service = _provider(request), parts(request)
    tries = [("try", f"openid from {address(request)}")]
    take_all(service.limits, tries)
    kept, _, signed = request.cookies.get(ATTEMPT, "").partition(".")
    ours = await blocking(partial(service.devices.sign, kept))
    if not kept or not credentials.same(ours, signed):
        raise refused()
    begun = json.loads(base64.urlsafe_b64decode(kept))
    attempt = Attempt(begun["state"], begun["nonce"], begun["verifier"])
    answers = credentials.same(state, attempt.state) and time.time() < begun["ends"]
    if not answers or not code or (iss and iss != provider.issuer):
        raise refused()
    async with service.signing_in.turn(address(request)):
        who = await blocking(partial(provider.identity, code, attempt, _back(request)))
    find = partial(service.identities.account, provider.issuer, who.subject, who.name)
    name, token = await blocking(find), None
    if name is not None:
        with suppress(Problem):  # the account was deleted meanwhile
            token = await blocking(partial(service.accounts.begin, name, agent(request)))
    service.metrics.log_in("accepted" if token else "refused")
    if name is None or token is None:
        raise refused()
    for one in tries:
        service.limits.give_back(*one)
    await blocking(partial(service.audit.note, name, "log in", {"with": "openid"}))
    response = inside(request, token, begun["to"] or "/")
    response.delete_cookie(ATTEMPT)
    return response


def _provider(request: Request) -> OpenId:
    found = parts(request).openid
    if found is None:
        raise of_status(404)
    return found


def _back(request: Request) -> str:
    """Where the provider sends browsers back to; it knows the addresses that it may."""
    settings = parts(request).settings
    scheme = "https" if settings.https else "http"
    return f"{scheme}://{request.headers.get('host', '')}{settings.prefix}/login/openid/back"
