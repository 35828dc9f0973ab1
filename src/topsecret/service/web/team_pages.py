"""The owners' pages about people: accounts, first passwords, keys, the audit trail."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from topsecret.errors import InvalidParameter
from topsecret.service import shapes
from topsecret.service.api_owner import deleted, let_in
from topsecret.service.audit import shown
from topsecret.service.auth.credentials import new_password
from topsecret.service.auth.dependencies import owner
from topsecret.service.auth.people import Role, User
from topsecret.service.auth.standing import guarded
from topsecret.service.state import blocking, parts
from topsecret.service.web.rendering import render

team_pages = APIRouter(prefix="/owner", include_in_schema=False)
Owner = Annotated[User, Depends(owner)]
Text = Annotated[str, Form(max_length=300)]


@team_pages.get("/analysts")
async def analysts(request: Request, person: Owner) -> Response:
    """Who has an account."""
    return await _analysts(request, person)


@team_pages.post("/analysts")
async def add_analyst(
    request: Request,
    person: Owner,
    name: Text,
    role: Annotated[Role, Form()] = "analyst",
    sign_in: Annotated[Literal["password", "openid"], Form()] = "password",
) -> Response:
    """Let somebody in; the first password is on the page that answers and nowhere else."""
    known = name.strip().lower()
    try:
        password = await blocking(partial(let_in, parts(request), person, known, role, sign_in))
    except InvalidParameter as error:
        return await _analysts(
            request, person, 400, wrong=f"{str(error)[:1].upper()}{str(error)[1:]}."
        )
    if password is None:
        return RedirectResponse("/owner/analysts", 303)
    return await _analysts(request, person, made=(known, password))


@team_pages.post("/analysts/reset")
async def reset(request: Request, person: Owner, name: Text) -> Response:
    """A new first password for somebody who forgot theirs."""
    password = new_password()
    change = guarded(parts(request).accounts, person).set_password
    await blocking(partial(change, name, password, first=True))
    return await _analysts(request, person, made=(name, password))


@team_pages.post("/analysts/remove")
async def remove(request: Request, person: Owner, name: Text) -> Response:
    """Delete an account and all that it had."""
    try:
        await blocking(partial(deleted, parts(request), person, name))
    except InvalidParameter as error:
        return await _analysts(
            request, person, 400, wrong=f"{str(error)[:1].upper()}{str(error)[1:]}."
        )
    return RedirectResponse("/owner/analysts", 303)


@team_pages.post("/analysts/revoke")
async def revoke(request: Request, person: Owner, name: Text, key: Text) -> Response:
    """End a key of somebody's."""
    accounts = guarded(parts(request).accounts, person)
    await blocking(partial(accounts.revoke_key, name, key))
    return RedirectResponse("/owner/analysts", 303)


@team_pages.get("/audit")
async def audit(request: Request, person: Owner, before: shapes.Position = None) -> Response:
    """Who did what."""
    entries = [shown(one) for one in await blocking(partial(parts(request).audit.page, before))]
    return render(request, "audit.html", person, entries=entries)


@team_pages.get("/audit/download.jsonl")
async def export_audit(request: Request, person: Owner) -> Response:
    """The whole trail, one JSON object per line, oldest first."""
    lines = (json.dumps(shown(one)) + "\n" for one in parts(request).audit.all())
    headers = {"content-disposition": 'attachment; filename="audit.jsonl"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


async def _analysts(
    request: Request,
    person: User,
    status: int = 200,
    *,
    wrong: str = "",
    made: tuple[str, str] | None = None,
) -> Response:
    accounts = parts(request).accounts
    users = await blocking(accounts.users)
    keys = {one.name: await blocking(partial(accounts.keys, one.name)) for one in users}
    return render(
        request,
        "analysts.html",
        person,
        status,
        users=users,
        keys=keys,
        wrong=wrong,
        made=made,
        openid=parts(request).openid is not None,
    )
