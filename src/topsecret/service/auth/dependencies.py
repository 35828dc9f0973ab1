"""Who is asking: a machine by its key, a person by their session; and whether they may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import lru_cache, partial
from typing import Any, get_type_hints
from urllib.parse import urlsplit

from pydantic import BaseModel
from starlette.requests import Request

from topsecret.service.audit import details
from topsecret.service.auth import credentials
from topsecret.service.auth.people import Scope, User
from topsecret.service.auth.rate_limits import Limits
from topsecret.service.fair_starts import network
from topsecret.service.problems import Problem
from topsecret.service.state import Parts, blocking, parts
from topsecret.service.texts import check_sendable

SESSION = "topsecret_session"
VISIT = "topsecret_visit"
DEVICE = "topsecret_device"
CSRF_HEADER = "x-csrf-token"
FIRST_PASSWORD = "first_password"
SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
READING: tuple[Scope, ...] = ("all", "read", "ask")
"""The scopes of keys that may read."""


def presented(request: Request) -> tuple[str, bool]:
    """The secret that a request comes with, or nothing, and whether it is a key."""
    given = request.headers.get("authorization")
    if given is None:
        return request.cookies.get(SESSION) or "", False
    scheme, _, key = given.partition(" ")
    return key if scheme.lower() == "bearer" else "", True


async def known(request: Request) -> User | None:
    """The account behind a request, if there is one."""
    accounts = parts(request).accounts
    secret, is_key = presented(request)
    if not secret:
        return None
    if found := accounts.recognised.by("key" if is_key else "session", secret):
        return found
    if is_key:
        return await _by_key(request, parts(request), secret)
    return await blocking(lambda: accounts.by_session(secret))


async def newcomer(request: Request) -> User:
    """The account behind a request, who may still have a first password."""
    return await noted(request, await _scoped(request, (), first=True))


async def user(request: Request) -> User:
    """The account behind a request, by a session or by a key without limits."""
    return await _scoped(request, ())


async def reader(request: Request) -> User:
    """The account behind a request that changes nothing."""
    return await _scoped(request, READING)


async def asker(request: Request) -> User:
    """The account behind a question."""
    return await _scoped(request, ("ask",))


async def _scoped(request: Request, scopes: Sequence[Scope], *, first: bool = False) -> User:
    """Who asks, with a key of one of these scopes; a person's changes carry the page's token."""
    found = await known(request)
    if found is None:
        raise Problem(
            401,
            "not_logged_in",
            "Log in, or send an API key: Authorization: Bearer tsk_…",
            {"www-authenticate": "Bearer"},
        )
    if request.method not in SAFE and "authorization" not in request.headers:
        check_origin(request)
        sent = request.headers.get(CSRF_HEADER) or ""
        if not sent and _is_form(request):
            form = await request.form()
            sent = str(form.get("csrf") or "")
        if not credentials.same(sent, credentials.csrf_token(request.cookies[SESSION])):
            raise Problem(403, "form_expired", "This page is out of date: load it again.")
    if found.scope not in ("all", *scopes):
        raise Problem(403, "scope", f"This key is for {found.scope!r} alone.")
    request.state.account = found.name
    limited(request, "request", found.name)
    if found.first and not first:
        raise Problem(403, FIRST_PASSWORD, "Choose a password of your own first.")
    return found


async def noted(request: Request, person: User, **more: str) -> User:
    """The person, whose change is in the audit trail before it is made."""
    if request.method not in SAFE:
        given = await _sent(request) | request.path_params  # what is done is what the path says
        given |= more
        check_sendable(given)
        action = request.scope["endpoint"].__name__.replace("_", " ")
        told = details(given) | ({"by_key": person.key} if person.key else {})
        note = partial(parts(request).audit.note, person.name, action, told)
        request.state.noted = await blocking(note)
    return person


def noting_key(request: Request, person: User) -> Callable[[str], object]:
    """Puts the id of a key into the audit trail, as what the entry before it makes."""
    note, entry = parts(request).audit.note, request.state.noted
    return lambda key: note(person.name, "key id", {"entry": entry, "key": key})


async def changer(request: Request) -> User:
    """The account behind a request that may change what is its own."""
    return await noted(request, await user(request))


async def saver(request: Request) -> User:
    """The account behind a request that keeps or forgets a question."""
    return await noted(request, await asker(request))


_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").lower().startswith(_FORMS)


async def _sent(request: Request) -> dict[str, Any]:
    """The fields of a form or of a JSON body that the address takes; others change nothing."""
    form_fields, json_fields = _fields(request.scope["endpoint"])
    found: dict[str, Any] = {}
    if form_fields and _is_form(request):
        form = await request.form()
        for name in form_fields & form.keys():
            several = form.getlist(name)
            found[name] = several if len(several) > 1 else several[0]
    elif json_fields:
        with suppress(ValueError, RecursionError):
            body = await request.json()
            found = body if isinstance(body, dict) else {}
    return {name: found[name] for name in (form_fields | json_fields) & found.keys()}


@lru_cache
def _fields(endpoint: Callable[..., object]) -> tuple[frozenset[str], frozenset[str]]:
    """What an address takes: the fields of its form, and those of its JSON body."""
    hints = get_type_hints(endpoint)
    hints.pop("return", None)
    for kind in hints.values():
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return frozenset(), frozenset(kind.model_fields)
    return frozenset(name for name in hints if hints[name] not in (Request, User)), frozenset()


async def owner(request: Request) -> User:
    """The owner of the service behind a request."""
    return await noted(request, _owning(await user(request)))


async def dataset_owner(request: Request) -> User:
    """Who decides about the dataset that the address names."""
    found = await user(request)
    if not found.manages(str(request.path_params.get("dataset"))):
        raise _owners_only()
    return await noted(request, found)


async def some_owner(request: Request) -> User:
    """Who decides about any dataset."""
    found = await user(request)
    if not (found.owns or found.owned):
        raise _owners_only()
    return await noted(request, found)


async def scraper(request: Request) -> User:
    """The owner behind a request for metrics, whose key may be for them alone."""
    return _owning(await _scoped(request, ("metrics",)))


def _owning(found: User) -> User:
    if not found.owns:
        raise _owners_only()
    return found


def _owners_only() -> Problem:
    return Problem(403, "owner_only", "Only an owner may do this.")


async def visitor(request: Request) -> User | None:
    """Who looks at a page that is open to all."""
    found = await known(request)
    return found if found is not None and found.scope == "all" else None


def check_origin(request: Request) -> None:
    """A change that a browser sends must come from our own pages."""
    origin = request.headers.get("origin")
    ours = origin is None
    if origin is not None:
        with suppress(ValueError):  # "http://[" is nobody's
            ours = urlsplit(origin).netloc == request.headers.get("host")
    if not ours or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Problem(403, "foreign_page", "This was sent from another site's page.")


def limited(request: Request, kind: str, who: str, number: int = 1) -> None:
    """Refuse when there were too many of a kind."""
    seconds = parts(request).limits.wait(kind, who, number)
    if seconds:
        raise too_many(seconds)


def too_many(seconds: int) -> Problem:
    """The problem for who comes too often."""
    return Problem(
        429,
        "too_many_requests",
        f"That was too many at once; try again in {seconds} s.",
        {"retry-after": str(seconds)},
    )


def address(request: Request) -> str:
    """Where a request comes from, for limits alone; of IPv6 the network, which one person has."""
    return network(request.client.host if request.client is not None else "-")


def take_all(limits: Limits, whose: Sequence[tuple[str, str]]) -> None:
    """Take a token of each kind and person, or none and refuse."""
    for number, who in enumerate(whose):
        if seconds := limits.wait(*who):
            for taken in whose[:number]:
                limits.give_back(*taken)
            raise too_many(seconds)


async def _by_key(request: Request, service: Parts, key: str) -> User | None:
    """Whose key it is. Guesses at a key's secret are counted, and never stop the right one."""
    accounts, identity = service.accounts, credentials.parse_key(key)[0]
    kept = await blocking(lambda: accounts.key_hash(identity)) if identity else None
    if kept is None:
        return None
    # A slow hash, until the key is used for the first time: one after the other, so that who
    # guesses at it takes no more than one turn.
    turn = service.old_keys[identity] if credentials.hashed_slowly(kept) else nullcontext()
    async with turn:
        found = await blocking(lambda: accounts.by_key(key))
    if found is None:
        take_all(service.limits, [("try", f"key {identity}")])
    return found
