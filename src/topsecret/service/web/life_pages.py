"""The owners' pages about the life of a dataset: edit, point to other events, pause, retire."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from topsecret.errors import DataIndependentFailure, InvalidParameter
from topsecret.service import shapes
from topsecret.service.api_owner import edited, listed_files
from topsecret.service.auth.dependencies import dataset_owner
from topsecret.service.auth.people import User
from topsecret.service.auth.standing import guarded
from topsecret.service.dataset_life import Changes, State
from topsecret.service.filters import KINDS
from topsecret.service.problems import Problem
from topsecret.service.state import blocking, parts
from topsecret.service.table_versions import VersionFrom
from topsecret.service.web.rendering import render

life_pages = APIRouter(prefix="/owner/datasets/{dataset}", include_in_schema=False)
DatasetOwner = Annotated[User, Depends(dataset_owner)]
Text = Annotated[str, Form(max_length=500)]


@life_pages.get("/edit")
async def edit_form(
    request: Request, person: DatasetOwner, dataset: shapes.DatasetName
) -> Response:
    """What can be changed."""
    return await _form(request, person, dataset)


@life_pages.post("/edit")
async def edit(
    request: Request,
    person: DatasetOwner,
    dataset: shapes.DatasetName,
    title: Text,
    columns: Annotated[list[str] | None, Form()] = None,
    version: Text = "",
    version_table: Text = "",
    version_column: Text = "",
    version_trusted: Text = "",
    file: Text = "",
    source: Text = "",
    table: Text = "",
) -> Response:
    """Change it."""
    form = {str(key): str(value) for key, value in (await request.form()).items()}
    filters = {
        key.removeprefix("filter:"): kind
        for key, kind in form.items()
        if key.startswith("filter:") and kind in KINDS
    }
    service = parts(request)
    known = await blocking(partial(service.datasets.get, dataset))
    read = VersionFrom(version_table.strip(), version_column.strip(), bool(version_trusted))
    wanted = read if read.table or read.column else None
    asked = None
    if known.table is not None and "version" in form:
        ended = wanted is None and known.version_from is not None and "version_table" in form
        if ended or version.strip() != (known.version or ""):
            asked = version
    changes = Changes(title.strip(), tuple(columns or ()), filters, asked, file, source, table)
    if wanted != known.version_from:
        changes = replace(changes, version_from=wanted)
    try:
        await edited(service, person, dataset, changes)
    except InvalidParameter as error:
        wrong = f"{str(error)[:1].upper()}{str(error)[1:]}."
        return await _form(request, person, dataset, 400, wrong)
    return RedirectResponse(f"/owner/datasets/{dataset}", 303)


@life_pages.post("/state")
async def move(
    request: Request,
    person: DatasetOwner,
    dataset: shapes.DatasetName,
    state: Annotated[State, Form()],
) -> Response:
    """Pause, go on, or retire."""
    await blocking(partial(guarded(parts(request).life, person).move, dataset, state))
    return RedirectResponse(f"/owner/datasets/{dataset}", 303)


@life_pages.post("/delete")
async def delete(request: Request, person: DatasetOwner, dataset: shapes.DatasetName) -> Response:
    """Take back a registration of which nothing was asked."""
    await blocking(partial(guarded(parts(request).life, person).delete, dataset))
    return RedirectResponse("/owner", 303)


async def _form(
    request: Request, person: User, name: str, status: int = 200, wrong: str = ""
) -> Response:
    service = parts(request)
    dataset = await blocking(partial(service.datasets.get, name))
    try:
        find = partial(service.datasets.existing, dataset)
        existing = await service.opening.run(person.name, dataset.events, find)
    except (DataIndependentFailure, InvalidParameter, Problem):
        existing = (dataset.person, *dataset.columns)  # it is to be pointed elsewhere
    files = await listed_files(service, person) if person.owns else []
    columns = [column for column in existing if column != dataset.person]
    shown = {"dataset": dataset, "columns": columns, "files": files, "wrong": wrong}
    return render(request, "edit.html", person, status, **shown)
