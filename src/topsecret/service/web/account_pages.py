"""Coming in and one's own account: set-up, log-in, log-out, password, keys."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from topsecret.errors import InvalidParameter
from topsecret.service.auth import credentials
from topsecret.service.auth.accounts import SESSION_SECONDS
from topsecret.service.auth.dependencies import (
    DEVICE,
    SESSION,
    VISIT,
    address,
    changer,
    check_origin,
    limited,
    newcomer,
    noting_key,
    take_all,
    user,
)
from topsecret.service.auth.people import Scope, User
from topsecret.service.problems import Problem
from topsecret.service.state import blocking, parts
from topsecret.service.web.rendering import render

account_pages = APIRouter(include_in_schema=False)
Person = Annotated[User, Depends(user)]
Newcomer = Annotated[User, Depends(newcomer)]
Changer = Annotated[User, Depends(changer)]
Text = Annotated[str, Form(max_length=300)]
LongText = Annotated[str, Form(max_length=2000)]
DEVICE_SECONDS = 400 * 86400


@account_pages.get("/login")
async def login(request: Request, to: str = "") -> Response:
    """The door; behind it waits the page that was asked for."""
    if await blocking(lambda: parts(request).accounts.empty):
        return RedirectResponse("/setup", 303)
    return _door(request, "login.html", wrong="", name="", to=local(to))


@account_pages.post("/login")
async def log_in(
    request: Request, name: Text, password: Text, visit: Text = "", to: LongText = ""
) -> Response:
    """Open it."""
    service = parts(request)
    _check_visit(request, visit)
    name = name.strip().lower()
    # Every try is counted before the slow look at the password, and forgotten if it was right. A
    # browser from which the person came in before has tries of its own, whatever others do.
    device = request.cookies.get(DEVICE, "")
    came_before = await blocking(lambda: bool(device) and service.devices.knows(device, name))
    if came_before:
        tries = [("try", f"log-in on {device[:20]}")]
    else:
        tries = [("try", f"log-in from {address(request)}"), ("name", f"log-in of {name}")]
    # Log-ins with the right password are limited, too; a wrong one counts for nothing there.
    accepted = ("accepted", f"{name} from {address(request)}")
    take_all(service.limits, [*tries, accepted])
    log_in = partial(service.accounts.log_in, name, password, agent(request))
    async with service.hashing.turn(accepted[1]):
        token = await blocking(log_in)
    service.metrics.log_in("accepted" if token else "refused")
    for who in tries if token is not None else [accepted]:
        service.limits.give_back(*who)
    if token is None:
        wrong = "Name and password do not match. Please try again."
        return _door(request, "login.html", 401, wrong=wrong, name=name, to=local(to))
    await blocking(partial(service.audit.note, name, "log in"))
    come = inside(request, token, local(to) or "/")
    made = await blocking(partial(service.devices.new, name))
    secure = service.settings.https
    come.set_cookie(
        DEVICE, made, max_age=DEVICE_SECONDS, httponly=True, samesite="strict", secure=secure
    )
    return come


@account_pages.post("/logout")
async def log_out(request: Request, person: Newcomer) -> Response:
    """Close the session."""
    token = request.cookies.get(SESSION, "")
    await blocking(partial(parts(request).accounts.log_out, token))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(SESSION)
    return response


@account_pages.get("/setup")
async def setup(request: Request, token: str = "") -> Response:
    """The first run: the printed link makes the owner's account."""
    accounts = parts(request).accounts
    if not await blocking(lambda: accounts.empty):
        return RedirectResponse("/login", 303)
    limited(request, "request", f"set-up from {address(request)}")
    valid = bool(token) and await blocking(partial(accounts.may_set_up, token[:200]))
    return _door(request, "setup.html", token=token[:200] if valid else "", wrong="", name="owner")


@account_pages.post("/setup")
async def set_up(
    request: Request, token: Text, name: Text, password: Text, again: Text, visit: Text = ""
) -> Response:
    """Make the owner's account."""
    service = parts(request)
    _check_visit(request, visit)
    limited(request, "try", f"set-up from {address(request)}")
    if not await blocking(partial(service.accounts.may_set_up, token)):
        raise Problem(403, "wrong_token", "This set-up link is not valid, or was used already.")
    wrong = "" if password == again else "The two passwords differ."
    if not wrong:
        try:
            await blocking(partial(service.accounts.set_up, token, name.strip().lower(), password))
        except InvalidParameter as error:
            wrong = f"{str(error)[:1].upper()}{str(error)[1:]}."
    if wrong:
        return _door(request, "setup.html", 400, token=token, wrong=wrong, name=name)
    name = name.strip().lower()
    await blocking(partial(service.audit.note, name, "set up"))
    session = await blocking(partial(service.accounts.log_in, name, password, agent(request)))
    return inside(request, session or "", "/owner")


@account_pages.get("/account")
async def account(request: Request, person: Person) -> Response:
    """One's own password and keys."""
    return await _account(request, person)


@account_pages.get("/account/password")
async def first_password(request: Request, person: Newcomer) -> Response:
    """The form for somebody who came in with a password that another handed over."""
    return render(request, "password.html", person, wrong="")


@account_pages.post("/account/password")
async def change_password(request: Request, person: Newcomer, old: Text, new: Text) -> Response:
    """Change the password; every session ends, and a new one begins here."""
    service = parts(request)
    limited(request, "try", f"password of {person.name}")
    wrong = kept = ""
    async with service.hashing.turn(person.name):
        checked = await blocking(partial(service.accounts.checked, person.name, old))
    if checked is None:
        wrong = "The old password is not right."
    elif old == new:
        wrong = "The new password is the old one."
    else:
        try:
            change = partial(service.accounts.set_password, person.name, new, checked=checked)
            async with service.hashing.turn(person.name):
                kept = await blocking(change)
        except InvalidParameter as error:
            wrong = f"{str(error)[:1].upper()}{str(error)[1:]}."
    if wrong and person.first:
        return render(request, "password.html", person, 400, wrong=wrong)
    if wrong:
        return await _account(request, person, 400, wrong=wrong)
    token = await blocking(partial(service.accounts.begin, person.name, agent(request), kept))
    return inside(request, token, "/" if person.first else "/account")


@account_pages.post("/account/sessions/end")
async def end_session(request: Request, person: Changer, session: Text = "") -> Response:
    """End one of one's sessions, or all but this one."""
    accounts, token = parts(request).accounts, request.cookies.get(SESSION, "")
    for one in await blocking(partial(accounts.sessions, person.name, token)):
        if one.id == session or (not session and not one.here):
            await blocking(partial(accounts.end_session, person.name, one.id))
    return RedirectResponse("/account", 303)


@account_pages.post("/account/keys")
async def make_key(
    request: Request,
    person: Changer,
    label: Text,
    scope: Annotated[Scope, Form()] = "ask",
    days: Annotated[int, Form(ge=0, le=3650)] = 90,
) -> Response:
    """A new key, shown on the page that answers and never again; 0 days are for good."""
    make, told = parts(request).accounts.new_key, noting_key(request, person)
    given = (label.strip(), scope, days or None, person, told)
    try:
        key = await blocking(partial(make, person.name, *given))
    except InvalidParameter as error:
        return await _account(request, person, 400, wrong=f"{error}.")
    return await _account(request, person, made=key)


@account_pages.post("/account/keys/revoke")
async def revoke_key(request: Request, person: Changer, key: Text) -> Response:
    """End a key."""
    await blocking(partial(parts(request).accounts.revoke_key, person.name, key))
    return RedirectResponse("/account", 303)


async def _account(
    request: Request, person: User, status: int = 200, *, wrong: str = "", made: str = ""
) -> Response:
    accounts, token = parts(request).accounts, request.cookies.get(SESSION, "")
    keys = await blocking(partial(accounts.keys, person.name))
    sessions = await blocking(partial(accounts.sessions, person.name, token))
    shown = {"keys": keys, "sessions": sessions, "wrong": wrong, "made": made}
    return render(request, "account.html", person, status, **shown)


def _door(request: Request, template: str, status: int = 200, **values: str) -> Response:
    """A form for somebody without a session: a cookie and a field carry the same token."""
    provider = parts(request).openid
    values["provider"] = "" if provider is None else urlsplit(provider.issuer).netloc
    visit = request.cookies.get(VISIT) or credentials.token()
    page = render(request, template, None, status, visit=visit, **values)
    secure = parts(request).settings.https
    page.set_cookie(VISIT, visit, httponly=True, samesite="strict", secure=secure)
    return page


def agent(request: Request) -> str:
    """What the browser calls itself."""
    return request.headers.get("user-agent", "")


def local(to: str) -> str:
    """The path of a page here, or nothing: a link must lead nowhere else."""
    here = to.startswith("/") and not to.startswith("//") and len(to) <= 2000
    return to if here and to.isprintable() and "\\" not in to else ""


def _check_visit(request: Request, visit: str) -> None:
    check_origin(request)
    cookie = request.cookies.get(VISIT, "")
    if not cookie or not credentials.same(cookie, visit):
        raise Problem(403, "form_expired", "This page is out of date: load it again.")


def inside(request: Request, token: str, to: str = "/") -> Response:
    """The answer that opens the door: a session's cookie, and where to go."""
    response = RedirectResponse(to, 303)
    response.set_cookie(
        SESSION,
        token,
        max_age=int(SESSION_SECONDS),
        httponly=True,
        # Links from elsewhere lead in; changes need the page's token and origin beside.
        samesite="lax",
        secure=parts(request).settings.https,
    )
    return response
