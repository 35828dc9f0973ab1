"""The analysts' pages: datasets, a question, its answer, the history, the API's description."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from topsecret.service import shapes
from topsecret.service.api import asked, cancelled, found, metered
from topsecret.service.api_sql import from_query
from topsecret.service.auth.dependencies import limited, user, visitor
from topsecret.service.auth.people import User
from topsecret.service.filters import VERBS, Filter, check_size
from topsecret.service.grouped_by import MOST_GROUPS, GroupedBy
from topsecret.service.jobs.answering import not_now
from topsecret.service.jobs.job import Asked, Job
from topsecret.service.preview import CLOSED, EPSILONS, LARGEST_K, Length
from topsecret.service.problems import Problem
from topsecret.service.ranked_by import RankedBy
from topsecret.service.shapes import LONGEST_QUERY
from topsecret.service.state import Parts, blocking, in_turn, parts
from topsecret.service.web.rendering import expert, lists, percent_left, plain, render
from topsecret.sources.measures import PRIVATE

pages = APIRouter(include_in_schema=False)
PAGE = 50
Person = Annotated[User, Depends(user)]


@pages.get("/")
async def home(request: Request) -> Response:
    """The datasets that the visitor may ask."""
    service, person = parts(request), await visitor(request)
    if person is not None and person.first:
        return RedirectResponse("/account/password", 303)
    if person is None:
        empty = await blocking(lambda: service.accounts.empty)
        return RedirectResponse("/setup" if empty else "/login", 303)
    cards = await blocking(partial(_cards, service, person.name))
    jobs = await blocking(partial(service.jobs.without_answers, person.name, None, 5))
    return render(request, "home.html", person, cards=cards, jobs=jobs)


@pages.get("/datasets/{dataset}")
async def question(request: Request, person: Person, dataset: shapes.DatasetName) -> Response:
    """The page to ask from."""
    return await _question(request, person, dataset)


@pages.post("/datasets/{dataset}")
async def ask(
    request: Request,
    person: Person,
    dataset: shapes.DatasetName,
    request_id: Annotated[str, Form(pattern=shapes.REQUEST_ID)],
    k: Annotated[int, Form(ge=1, le=LARGEST_K)] = 10,
    length: Annotated[Literal["k", "auto", "all"], Form()] = "k",
    counts: Annotated[str, Form(max_length=10)] = "",
    step: Annotated[int | None, Form(ge=0, lt=len(EPSILONS))] = None,
    by: Annotated[str, Form(max_length=210)] = "persons",
    bound: Annotated[str, Form(max_length=200)] = PRIVATE,
    unit: Annotated[str, Form(max_length=10)] = "1",
    column: Annotated[str, Form(max_length=200)] = "",
    group_by: Annotated[str, Form(max_length=200)] = "",
    groups: Annotated[str, Form(max_length=4000)] = "",
    disjoint: Annotated[str, Form(max_length=10)] = "",
    query: Annotated[str, Form(max_length=LONGEST_QUERY)] = "",
) -> Response:
    """Ask, in SQL where there is a query; the answer's page shows the progress."""
    many: Length = k if length == "k" else length
    epsilon = None if step is None else EPSILONS[step]
    where = () if query.strip() else _filters(await request.form())
    question = Asked(
        column,
        many,
        epsilon,
        where,
        bool(counts),
        ranked_by=_ranked_by(by, bound, unit),
        grouped_by=_grouped_by(group_by, groups, bool(disjoint)),
    )
    if query.strip():
        limited(request, "plan", person.name)
        query = query.replace("\r\n", "\n")  # as a program would have sent it
        question = await from_query(parts(request), person.name, dataset, query, epsilon)
    job, _ = await asked(request, person, dataset, question, request_id)
    return RedirectResponse(f"/answers/{job.id}", 303)


@pages.get("/answers")
async def history(
    request: Request,
    person: Person,
    dataset: shapes.OfDataset = None,
    before: shapes.Before = None,
) -> Response:
    """What the visitor asked or, of a dataset that they may view, everybody."""
    service, all_of = parts(request), dataset is not None and person.sees(dataset)
    whose = None if all_of else person.name
    read = partial(service.jobs.without_answers, whose, dataset, PAGE, before)
    jobs = await blocking(read)
    known = await blocking(partial(service.datasets.open_to, person.name, person.sees))
    viewed = [one for one in known if person.sees(one.name)]
    older = jobs[-1].id if len(jobs) == PAGE else ""
    return render(
        request,
        "history.html",
        person,
        jobs=jobs,
        viewed=viewed,
        dataset=dataset,
        all_of=all_of,
        older=older,
    )


@pages.get("/answers/{answer}")
async def answer(request: Request, person: Person, answer: shapes.Identity) -> Response:
    """A question, its progress or its answer."""
    service = parts(request)
    job = await found(request, person, answer)
    dataset = await blocking(partial(service.datasets.get, job.dataset))
    share = await blocking(partial(service.datasets.allowance, job.dataset, job.user))
    account = await blocking(partial(service.datasets.account, job.dataset))

    def page() -> Response:
        return render(
            request,
            "answer.html",
            person,
            job=job,
            dataset=dataset,
            lists=lists(job),
            plain=plain(job),
            expert=expert(job),
            tick=f"{service.settings.tick:g}",
            limit=f"{service.settings.limit:g}",
            left=percent_left(account, share),
            age=max(0, int((datetime.now(UTC) - job.time).total_seconds())),
        )

    return await in_turn(service, person.name, page)


@pages.post("/answers/{answer}/cancel")
async def cancel(request: Request, person: Person, answer: shapes.Identity) -> Response:
    """End a question that is under way."""
    await cancelled(request, person, answer)
    return RedirectResponse(f"/answers/{answer}", 303)


@pages.get("/answers/{answer}/download.{form}")
async def download(
    request: Request, person: Person, answer: shapes.Identity, form: str
) -> Response:
    """The answer as a file."""
    job = await found(request, person, answer)
    if job.release is None or form not in ("csv", "json"):
        raise Problem(404, "not_found", "This question has no answer to download.")
    name = f"{job.dataset}-{job.asked.k}-{job.id}.{form}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    kind = "text/csv" if form == "csv" else "application/json"
    write = job.release.to_csv if form == "csv" else partial(_as_json, job)
    text = await in_turn(parts(request), person.name, write)
    return Response(text.encode(errors="replace"), media_type=kind, headers=headers)


@pages.get("/docs")
async def docs(request: Request) -> Response:
    """The API's description for people, made from its OpenAPI schema."""
    person, schema = await visitor(request), request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = str(body.get("schema", {}).get("$ref", "")).rpartition("/")[2]
            fields = schema["components"]["schemas"].get(name, {})
            groups.setdefault(operation["tags"][0], []).append(
                {
                    "path": path,
                    "method": method.upper(),
                    "words": operation.get("description", ""),
                    "fields": fields.get("properties", {}),
                    "required": fields.get("required", []),
                }
            )
    return render(request, "docs.html", person, groups=groups)


def _as_json(job: Job) -> str:
    return json.dumps(job.to_dict(), indent=2, ensure_ascii=False)


def _ranked_by(by: str, bound: str, unit: str) -> RankedBy | None:
    """What the form asks to rank by: people, rows or sum:COLUMN."""
    if by == "persons":
        return None
    if by != "rows" and not by.startswith("sum:"):
        raise Problem(400, "invalid", "Rank by persons, rows or sum:COLUMN.")
    bounds = tuple(part.strip() for part in bound.split(",") if part.strip()) or (PRIVATE,)
    column = by.removeprefix("sum:") if by.startswith("sum:") else None
    return RankedBy(column, unit if column is not None else "1", bounds)


def _grouped_by(column: str, listed: str, disjoint: bool) -> GroupedBy | None:
    """The groups that the form lists, with commas between them; none without a column."""
    if not column:
        return None
    values = tuple(part.strip() for part in listed.split(",") if part.strip())
    return GroupedBy(column, values, disjoint)


def _filters(form: FormData) -> tuple[Filter, ...]:
    """The conditions that were filled in: verbs and values for each column, in pairs."""
    # One look at each field: a form may have a thousand, and nobody else is served meanwhile.
    given: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        given.setdefault(name, []).append(str(value).strip())
    named = [name.removeprefix("value:") for name in given if name.startswith("value:")]
    found = tuple(
        (one, verb, value)
        for one in named
        for verb, value in zip_longest(
            given.get(f"verb:{one}", ()), given[f"value:{one}"], fillvalue=""
        )
        if value
    )
    check_size(found)
    return found


async def _question(request: Request, person: User, name: str) -> Response:
    service = parts(request)
    dataset = await blocking(partial(service.datasets.asked_by, name, person.name))
    account = await blocking(partial(service.datasets.account, name))
    share = await blocking(partial(service.datasets.allowance, name, person.name))
    closed = "" if account.state == "open" else CLOSED
    if dataset.state is not None:
        closed = not_now(dataset.state)
    return render(
        request,
        "ask.html",
        person,
        dataset=dataset,
        fixed=await blocking(partial(metered, service, name)),
        closed=closed,
        left=percent_left(account, share),
        epsilons=EPSILONS,
        largest=LARGEST_K,
        verbs=VERBS,
        most_groups=MOST_GROUPS,
        limit=f"{service.settings.limit:g}",
        request_id=secrets.token_hex(12),
    )


def _cards(service: Parts, name: str) -> list[dict[str, Any]]:
    cards = []
    for one in service.datasets.open_to(name):
        account = service.datasets.account(one.name)
        left = percent_left(account, service.datasets.allowance(one.name, name))
        cards.append(
            {"dataset": one, "left": left, "open": account.state == "open" and one.state is None}
        )
    return cards
