"""The owner's pages: datasets, analysts, budgets, entries in doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from topsecret.errors import InvalidParameter, SourceError
from topsecret.ledger import Metered
from topsecret.ledger.account import what_is_left
from topsecret.service import shapes
from topsecret.service.api_owner import (
    allowed,
    closed,
    in_doubt,
    listed_files,
    registered,
    warned,
    written_off,
)
from topsecret.service.auth.dependencies import dataset_owner, owner, some_owner
from topsecret.service.auth.people import User
from topsecret.service.auth.roles import DatasetRole
from topsecret.service.auth.standing import guarded
from topsecret.service.datasets import NewDataset, place_of
from topsecret.service.filters import KINDS
from topsecret.service.problems import Problem
from topsecret.service.state import Parts, blocking, parts
from topsecret.service.web.rendering import percent_left, render

owner_pages = APIRouter(prefix="/owner", include_in_schema=False)
Owner = Annotated[User, Depends(owner)]
DatasetOwner = Annotated[User, Depends(dataset_owner)]
SomeOwner = Annotated[User, Depends(some_owner)]
Text = Annotated[str, Form(max_length=300)]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which events the owner is about to register."""

    file: str = ""
    source: str = ""
    table: str = ""

    @property
    def events(self) -> tuple[str, str]:
        """What is looked at."""
        return "", place_of(self.file or self.source, self.table)

    @property
    def suggested(self) -> str:
        """A name for programs."""
        last = self.file.rpartition("/")[2].split(".")[0] or self.table.rpartition(".")[2]
        plain = (c if c.isascii() and c.isalnum() else "-" for c in last.lower())
        return "".join(plain).strip("-")[:40]


@dataclass(frozen=True, slots=True)
class Given:
    """The form as the owner filled it in: a mistake must not cost the rest."""

    title: str = ""
    name: str = ""
    person: str = ""
    columns: tuple[str, ...] = ()
    filters: Mapping[str, str] = field(default_factory=dict)
    cap: str = ""
    epsilon: str = "4"
    delta: str = "1e-5"
    queries: str = ""
    picks: str = ""
    sql: bool = False


@owner_pages.get("")
async def overview(request: Request, person: SomeOwner) -> Response:
    """All datasets with their budgets."""
    service = parts(request)
    cards = await blocking(partial(_cards, service, person))
    doubts = await blocking(partial(in_doubt, service, person))
    return render(request, "owner.html", person, cards=cards, doubts=len(doubts))


@owner_pages.get("/new")
async def choose(
    request: Request, person: Owner, file: str = "", source: str = "", table: str = ""
) -> Response:
    """Register a dataset: first its file, or a database and its table, then the rest."""
    return await _form(request, person, Chosen(file, source, table), Given())


@owner_pages.post("/new")
async def register(
    request: Request,
    person: Owner,
    name: Text,
    title: Text,
    person_column: Text,
    epsilon: Annotated[float, Form(ge=0.001, le=20)],
    delta: Annotated[float, Form(ge=1e-12, le=0.01)],
    file: Annotated[str, Form(max_length=500)] = "",
    source: Text = "",
    table: Text = "",
    columns: Annotated[list[str] | None, Form()] = None,
    cap: Text = "",
    queries: Text = "",
    picks: Text = "",
    sql: Text = "",
) -> Response:
    """Register it."""
    chosen = Chosen(file, source, table)
    may_be_asked = tuple(column for column in columns or () if column != person_column)
    form = {str(key): str(value) for key, value in (await request.form()).items()}
    chosen_by = {
        key.removeprefix("filter:"): kind
        for key, kind in form.items()
        if key.startswith("filter:") and kind in KINDS
    }
    amounts = cap, f"{epsilon:g}", f"{delta:g}", queries, picks
    given = Given(title, name, person_column, may_be_asked, chosen_by, *amounts, sql=bool(sql))
    try:
        new = NewDataset(
            name.strip().lower(),
            title.strip(),
            file,
            person_column,
            may_be_asked,
            _whole(cap),
            epsilon,
            delta,
            _whole(queries),
            _whole(picks),
            source,
            table,
            chosen_by,
            bool(sql),
        )
        await registered(parts(request), person, new)
    except InvalidParameter as error:
        wrong = f"{str(error)[:1].upper()}{str(error)[1:]}."
        return await _form(request, person, chosen, given, 400, wrong)
    return RedirectResponse(f"/owner/datasets/{new.name}", 303)


@owner_pages.get("/datasets/{dataset}")
async def one(request: Request, person: DatasetOwner, dataset: shapes.DatasetName) -> Response:
    """A dataset: its budget, the shares of it, what happened."""
    return await _one(request, person, dataset)


@owner_pages.post("/datasets/{dataset}/allow")
async def allow(
    request: Request,
    person: DatasetOwner,
    dataset: shapes.DatasetName,
    analyst: Text,
    epsilon: Text = "",
    queries: Text = "",
    picks: Text = "",
) -> Response:
    """Give a share."""
    try:
        terms = {"epsilon": _number(epsilon), "queries": _whole(queries), "picks": _whole(picks)}
        await blocking(partial(allowed, parts(request), person, dataset, analyst, terms))
    except InvalidParameter as error:
        return await _one(
            request, person, dataset, 400, f"{str(error)[:1].upper()}{str(error)[1:]}."
        )
    return RedirectResponse(f"/owner/datasets/{dataset}", 303)


@owner_pages.post("/datasets/{dataset}/close")
async def close(request: Request, person: DatasetOwner, dataset: shapes.DatasetName) -> Response:
    """Admit nothing more."""
    await blocking(partial(closed, parts(request), person, dataset))
    return RedirectResponse(f"/owner/datasets/{dataset}", 303)


@owner_pages.post("/datasets/{dataset}/roles")
async def give_role(
    request: Request,
    person: DatasetOwner,
    dataset: shapes.DatasetName,
    name: Text,
    role: Annotated[DatasetRole | Literal["none"], Form()],
) -> Response:
    """Make somebody an owner or a viewer of this dataset, or neither."""
    service = parts(request)
    await blocking(partial(service.datasets.get, dataset))
    roles = guarded(service.roles, person)
    if role == "none":
        await blocking(partial(roles.take, dataset, name))
    else:
        await blocking(partial(roles.give, dataset, name, role))
    return RedirectResponse(f"/owner/datasets/{dataset}", 303)


@owner_pages.get("/in-doubt")
async def doubts(request: Request, person: SomeOwner) -> Response:
    """Reservations without a known end."""
    entries = await blocking(partial(in_doubt, parts(request), person))
    return render(request, "doubts.html", person, entries=entries)


@owner_pages.post("/in-doubt")
async def write_off(request: Request, person: SomeOwner, reservation: Text) -> Response:
    """Give one back."""
    await blocking(partial(written_off, parts(request), person, reservation))
    return RedirectResponse("/owner/in-doubt", 303)


async def _form(
    request: Request,
    person: User,
    chosen: Chosen,
    given: Given,
    status: int = 200,
    wrong: str = "",
) -> Response:
    service = parts(request)
    datasets = service.datasets
    look = partial(service.opening.run, person.name, chosen.events)
    columns: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    try:
        if chosen.file:
            columns = await look(partial(datasets.columns_of, chosen.file))
        elif chosen.table:
            columns = await look(partial(datasets.databases.columns, chosen.source, chosen.table))
        elif chosen.source:
            tables = await look(partial(datasets.databases.tables, chosen.source))
    except (InvalidParameter, SourceError):
        what = "file" if chosen.file else "table" if chosen.table else "database"
        chosen, status = Chosen(), 400
        wrong = f"This {what} cannot be used. Choose another one."
    except Problem as error:
        chosen, status, wrong = Chosen(), error.status, error.message
    start = chosen == Chosen()
    return render(
        request,
        "register.html" if columns else "choose.html",
        person,
        status,
        chosen=chosen,
        files=await listed_files(service, person) if start else (),
        databases=datasets.databases.names if start else (),
        tables=tables,
        columns=columns,
        wrong=wrong,
        given=given,
    )


async def _one(
    request: Request, person: User, name: str, status: int = 200, wrong: str = ""
) -> Response:
    service = parts(request)
    dataset = await blocking(partial(service.datasets.get, name))
    account = await blocking(partial(service.ledger.account, name))
    users = await blocking(service.accounts.users)
    jobs = await blocking(partial(service.jobs.without_answers, None, name, 30))
    warning = await warned(service, person, name)
    members = await blocking(partial(service.roles.members, name))
    begun = await blocking(partial(service.schedules.to_come, name))
    shares = [
        {
            "analyst": share.analyst,
            "left": percent_left(account, share),
            "words": what_is_left(share.left, share.limits),
        }
        for share in account.allowances
    ]
    return render(
        request,
        "dataset.html",
        person,
        status,
        dataset=dataset,
        account=account,
        guarantee=account.budget.guarantee,
        fixed=isinstance(account.budget, Metered),
        left=percent_left(account),
        shares=shares,
        users=users,
        members=members,
        jobs=jobs,
        schedules=begun,
        warning=warning,
        wrong=wrong,
    )


def _cards(service: Parts, person: User) -> list[dict[str, Any]]:
    cards = []
    for dataset in service.datasets.all():
        if not person.manages(dataset.name):
            continue
        account = service.ledger.account(dataset.name)
        cards.append(
            {
                "dataset": dataset,
                "left": percent_left(account),
                "state": dataset.state or account.state,
                "epsilon": account.budget.guarantee[0],
                "analysts": len(account.allowances),
                "pending": len(account.pending),
            }
        )
    return cards


def _whole(text: str) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or len(text) > 9 or int(text) < 1:
        raise InvalidParameter("please write a whole number of 1 or more, or leave it empty")
    return int(text)


def _number(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 20:
        raise InvalidParameter("please write an epsilon above 0 and at most 20")
    return value
