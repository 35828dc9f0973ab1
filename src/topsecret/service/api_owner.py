"""The API for the owner: register, let in, share, close, write off."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from topsecret.errors import InvalidParameter
from topsecret.service import owner_shapes as owned
from topsecret.service import shapes, texts
from topsecret.service.api import keys_of
from topsecret.service.audit import shown
from topsecret.service.auth.credentials import new_password
from topsecret.service.auth.dependencies import dataset_owner, owner, scraper, some_owner
from topsecret.service.auth.people import Role, User
from topsecret.service.auth.standing import guarded
from topsecret.service.dataset_life import Changes
from topsecret.service.datasets import NewDataset, place_of
from topsecret.service.gauges import gauges
from topsecret.service.middleware import API
from topsecret.service.problems import RESPONSES, Problem
from topsecret.service.state import Parts, blocking, in_turn, parts
from topsecret.service.table_versions import VersionFrom

owner_api = APIRouter(responses=RESPONSES, tags=["owner"])
Owner = Annotated[User, Depends(owner)]
DatasetOwner = Annotated[User, Depends(dataset_owner)]
SomeOwner = Annotated[User, Depends(some_owner)]
Scraper = Annotated[User, Depends(scraper)]
FOLDERS, BESIDE = "all folders", "the events of all datasets"


@owner_api.get("/metrics", response_class=Response, tags=["running"])
async def metrics(request: Request, person: Scraper) -> Response:
    """Numbers in Prometheus' format; scrape with an owner's API key of scope ``metrics``."""
    service = parts(request)
    text = await blocking(lambda: service.metrics.text() + gauges(service))
    return Response(text, headers={"content-type": service.metrics.content_type})


@owner_api.post(API + "/datasets", response_model=owned.RegisteredShape, status_code=201)
async def register(request: Request, person: Owner, new: owned.RegisterShape) -> dict[str, Any]:
    """Register a dataset and open its budget, once and for all."""
    values = new.model_dump()
    values["columns"] = tuple(values["columns"])
    await registered(parts(request), person, NewDataset(**values))
    return {"done": True, "warning": await warned(parts(request), person, new.name)}


@owner_api.get(API + "/sources", response_model=list[owned.SourceShape])
async def list_sources(request: Request, person: Owner) -> list[dict[str, str]]:
    """The databases that the service was started with, by name."""
    return [{"name": name} for name in parts(request).datasets.databases.names]


@owner_api.get(API + "/sources/{source}", response_model=owned.TablesShape)
async def list_tables(request: Request, person: Owner, source: shapes.SourceName) -> dict[str, Any]:
    """The tables of a database that may be registered."""
    service = parts(request)
    find = partial(service.datasets.databases.tables, source)
    tables = await service.opening.run(person.name, ("", place_of(source)), find)
    return {"name": source, "tables": tables}


@owner_api.post(API + "/datasets/{dataset}/allowances", response_model=shapes.DoneShape)
async def allow(
    request: Request,
    person: DatasetOwner,
    dataset: shapes.DatasetName,
    share: owned.AllowShape,
) -> dict[str, bool]:
    """Give an analyst a share of a dataset's budget, or replace it."""
    terms = share.model_dump(exclude={"analyst"})
    await blocking(partial(allowed, parts(request), person, dataset, share.analyst, terms))
    return {"done": True}


@owner_api.post(API + "/datasets/{dataset}/close", response_model=shapes.DoneShape)
async def close(
    request: Request, person: DatasetOwner, dataset: shapes.DatasetName
) -> dict[str, bool]:
    """Admit nothing more to a dataset; stored answers stay."""
    await blocking(partial(closed, parts(request), person, dataset))
    return {"done": True}


@owner_api.patch(API + "/datasets/{dataset}", response_model=owned.RegisteredShape)
async def edit(
    request: Request,
    person: DatasetOwner,
    dataset: shapes.DatasetName,
    given: owned.EditShape,
) -> dict[str, Any]:
    """Change what may be asked, or, as an owner of the service, point to the next file or table."""
    values = given.model_dump()
    values["columns"] = None if given.columns is None else tuple(given.columns)
    if given.version_from is not None:
        values["version_from"] = VersionFrom(**given.version_from.model_dump())
    service, changes = parts(request), Changes(**values)
    await edited(service, person, dataset, changes)
    warning = await warned(service, person, dataset) if changes.moves else None
    return {"done": True, "warning": warning}


@owner_api.post(API + "/datasets/{dataset}/state", response_model=shapes.DoneShape)
async def move(
    request: Request,
    person: DatasetOwner,
    dataset: shapes.DatasetName,
    given: owned.StateShape,
) -> dict[str, bool]:
    """Pause a dataset, let it go on, or retire it for good."""
    await blocking(partial(guarded(parts(request).life, person).move, dataset, given.state))
    return {"done": True}


@owner_api.delete(API + "/datasets/{dataset}", response_model=shapes.DoneShape)
async def delete(
    request: Request, person: DatasetOwner, dataset: shapes.DatasetName
) -> dict[str, bool]:
    """Take back a registration of which nothing was ever asked."""
    await blocking(partial(guarded(parts(request).life, person).delete, dataset))
    return {"done": True}


@owner_api.get(API + "/datasets/{dataset}/roles", response_model=list[owned.MemberShape])
async def list_roles(
    request: Request, person: DatasetOwner, dataset: shapes.DatasetName
) -> list[dict[str, str]]:
    """Who owns or views this dataset, beside the owners of the service."""
    members = await blocking(partial(parts(request).roles.members, dataset))
    return [{"name": one.name, "role": one.role} for one in members]


@owner_api.put(API + "/datasets/{dataset}/roles/{name}", response_model=shapes.DoneShape)
async def give_role(
    request: Request,
    person: DatasetOwner,
    dataset: shapes.DatasetName,
    name: shapes.AccountName,
    given: owned.RoleShape,
) -> dict[str, bool]:
    """Make somebody an owner or a viewer of this dataset."""
    service = parts(request)
    await blocking(partial(service.datasets.get, dataset))
    await blocking(partial(guarded(service.roles, person).give, dataset, name, given.role))
    return {"done": True}


@owner_api.delete(API + "/datasets/{dataset}/roles/{name}", response_model=shapes.DoneShape)
async def take_role(
    request: Request, person: DatasetOwner, dataset: shapes.DatasetName, name: shapes.AccountName
) -> dict[str, bool]:
    """Take somebody's role in this dataset away; a share stays."""
    roles = guarded(parts(request).roles, person)
    if not await blocking(partial(roles.take, dataset, name)):
        raise Problem(404, "not_found", "The account has no role in this dataset.")
    return {"done": True}


@owner_api.get(API + "/audit", response_model=list[owned.EntryShape])
async def list_audit(
    request: Request, person: Owner, before: shapes.Position = None, limit: shapes.PageLength = 100
) -> Response:
    """Who did what, newest first; the last position of a page, as ``before``, gives the next."""
    service = parts(request)

    def page() -> Response:
        entries = service.audit.page(before, limit)
        return JSONResponse([texts.shown(shown(one)) for one in entries])

    return await in_turn(service, person.name, page)


@owner_api.get(API + "/analysts", response_model=list[shapes.MeShape])
async def list_analysts(request: Request, person: Owner) -> list[dict[str, str]]:
    """Everybody who has an account."""
    users = await blocking(parts(request).accounts.users)
    return [{"name": one.name, "role": one.role} for one in users]


@owner_api.post(API + "/analysts", response_model=owned.MadeAnalystShape, status_code=201)
async def add_analyst(
    request: Request, person: Owner, new: owned.NewAnalystShape
) -> dict[str, str | None]:
    """Let an analyst or another owner in, with a first password that is shown this once.

    With ``sign_in`` of ``openid``, whom the provider calls by this name signs in, without one.
    """
    let = partial(let_in, parts(request), person, new.name, new.role, new.sign_in)
    return {"name": new.name, "password": await blocking(let)}


@owner_api.delete(API + "/analysts/{name}", response_model=shapes.DoneShape)
async def delete_account(
    request: Request, person: Owner, name: shapes.AccountName
) -> dict[str, bool]:
    """Delete an account: password, sessions, keys and roles; its questions under way are ended."""
    await blocking(partial(deleted, parts(request), person, name))
    return {"done": True}


@owner_api.get(API + "/analysts/{name}/keys", response_model=list[shapes.KeyShape])
async def list_keys_of(
    request: Request, person: Owner, name: shapes.AccountName
) -> list[dict[str, Any]]:
    """The API keys of an account, without their secrets."""
    return await blocking(partial(keys_of, parts(request), name))


@owner_api.delete(API + "/analysts/{name}/keys/{key}", response_model=shapes.DoneShape)
async def revoke_key_of(
    request: Request, person: Owner, name: shapes.AccountName, key: shapes.Identity
) -> dict[str, bool]:
    """End a key of an account, and the keys that it made."""
    accounts = guarded(parts(request).accounts, person)
    if not await blocking(partial(accounts.revoke_key, name, key)):
        raise Problem(404, "not_found", "The account has no such key.")
    return {"done": True}


@owner_api.get(API + "/in-doubt", response_model=list[owned.InDoubtShape])
async def list_in_doubt(request: Request, person: SomeOwner) -> list[dict[str, Any]]:
    """Reservations without an end: under way, or cut short."""
    return await blocking(partial(in_doubt, parts(request), person))


@owner_api.post(API + "/in-doubt/{reservation}/write-off", response_model=shapes.DoneShape)
async def write_off(
    request: Request, person: SomeOwner, reservation: shapes.Identity
) -> dict[str, bool]:
    """Give back a reservation in doubt, on the owner's word that no answer got out."""
    await blocking(partial(written_off, parts(request), person, reservation))
    return {"done": True}


async def registered(service: Parts, person: User, new: NewDataset) -> None:
    """Look at the events of a dataset, then open its budget and list it."""
    look = partial(service.datasets.examined, new)
    source = await service.opening.run(person.name, new.events, look)
    await blocking(partial(guarded(service.datasets, person).enter, new, source))


async def listed_files(service: Parts, person: User) -> list[str]:
    """The files that may be registered; none where a folder does not answer."""
    try:
        return await service.opening.run(person.name, ("", FOLDERS), service.datasets.files)
    except Problem:
        return []


async def warned(service: Parts, person: User, dataset: str) -> str | None:
    """A warning where the same events may have several budgets."""
    known = await blocking(partial(service.datasets.get, dataset))
    find = partial(service.datasets.also, known)
    try:
        others = await service.opening.run(person.name, ("", BESIDE), find)
    except Problem:
        return (
            "Whether another dataset is about the same events could not be looked up: a folder "
            "does not answer. If one is, the budgets add up."
        )
    if not others:
        return None
    names = ", ".join(others)
    return f"The same events seem to be registered as {names} too, or were: the budgets add up."


def allowed(
    service: Parts, person: User, dataset: str, analyst: str, terms: dict[str, float | None]
) -> None:
    """Give a share to somebody who has an account."""
    if analyst not in {one.name for one in service.accounts.users()}:
        raise InvalidParameter(f"there is no account {analyst!r}; let them in first")
    guarded(service.datasets, person).allow(dataset, analyst, terms)


async def edited(service: Parts, person: User, dataset: str, changes: Changes) -> None:
    """Change a dataset; only owners of the service choose among all its files and tables."""
    if changes.points and not person.owns:
        raise Problem(403, "owner_only", "Only an owner of the service may name files and tables.")
    look = partial(service.life.examined, dataset, changes)
    if changes.looks:
        known = await blocking(partial(service.datasets.get, dataset))
        values = await service.opening.run(person.name, changes.events(known), look)
    else:
        values = await blocking(look)
    await blocking(partial(guarded(service.life, person).write, dataset, values))


def closed(service: Parts, person: User, dataset: str) -> None:
    """Close a dataset's budget."""
    service.datasets.get(dataset)
    guarded(service.ledger, person).close_budget(dataset)


def let_in(service: Parts, person: User, name: str, role: Role, sign_in: str) -> str | None:
    """Make an account: its first password, or None where the provider says who it is."""
    if sign_in == "openid":
        if service.openid is None:
            raise InvalidParameter(
                "the service runs without --openid-issuer; start it with it, or use a password"
            )
        guarded(service.identities, person).invite(name, role)
        return None
    password = new_password()
    guarded(service.accounts, person).add(name, role, password, first=True)
    return password


def deleted(service: Parts, person: User, name: str) -> None:
    """Delete an account and end what it has under way."""
    guarded(service.accounts, person).deactivate(name)
    service.jobs.cancel_all(name)
    service.schedules.end_all(name)


def written_off(service: Parts, person: User, reservation: str) -> None:
    """Write off a reservation of a dataset that the person decides about."""
    mine = {one["reservation"] for one in in_doubt(service, person)}
    if not person.owns and reservation not in mine:
        raise Problem(404, "not_found", "There is no such reservation in your datasets.")
    guarded(service.ledger, person).write_off(reservation)


def in_doubt(service: Parts, person: User) -> list[dict[str, Any]]:
    """All reservations without an end in the datasets that the person decides about."""
    return [
        {
            "reservation": one.id,
            "dataset": dataset.name,
            "analyst": one.analyst or None,
            "time": one.time[:16],
        }
        for dataset in service.datasets.all()
        if person.manages(dataset.name)
        for one in service.ledger.account(dataset.name).pending
    ]
