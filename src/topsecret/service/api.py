"""The API for analysts: datasets, plans, questions, answers, budgets, keys."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from topsecret.ledger.account import NONE, what_is_left
from topsecret.ledger.amounts import as_text
from topsecret.service import shapes
from topsecret.service.auth.dependencies import (
    SESSION,
    asker,
    changer,
    limited,
    noted,
    noting_key,
    reader,
    user,
)
from topsecret.service.auth.people import User
from topsecret.service.auth.standing import guarded
from topsecret.service.datasets import Dataset
from topsecret.service.grouped_by import GroupedBy
from topsecret.service.jobs.answering import no_such_answer
from topsecret.service.jobs.job import ANSWERED, IN_DOUBT, Asked, Job
from topsecret.service.middleware import API
from topsecret.service.preview import Preview, preview
from topsecret.service.problems import RESPONSES, Problem
from topsecret.service.question_rules import fixed_price, may_be_asked
from topsecret.service.ranked_by import RankedBy
from topsecret.service.state import Parts, blocking, in_turn, parts

AT_A_TIME = 10
"""How many answers of a list are read at once."""

api = APIRouter(prefix=API, responses=RESPONSES)
Person = Annotated[User, Depends(user)]
Reader = Annotated[User, Depends(reader)]
Asker = Annotated[User, Depends(asker)]
Changer = Annotated[User, Depends(changer)]


# First: routes are tried in their order, and this one is asked by everybody who waits. Whoever was
# recognised a moment ago gets a stored answer without it (service.stored_answers).
@api.get("/answers/{answer}", response_model=shapes.AnswerShape, tags=["answers"])
async def get_answer(request: Request, person: Reader, answer: shapes.Identity) -> Response:
    """A question and, once it has one, its answer."""
    job = await found(request, person, answer)
    more = {"cause": job.cause} if person.manages(job.dataset) else {}
    return await blocking(lambda: _json(job.to_dict() | more))


@api.get("/health", response_model=shapes.HealthShape, tags=["running"])
async def health(request: Request) -> dict[str, str]:
    """Whether the service is up and can write to its ledger. Open to all."""
    await blocking(parts(request).health.check)
    return {"status": "ok"}


@api.get("/me", response_model=shapes.MeShape, tags=["account"])
async def me(person: Reader) -> dict[str, str]:
    """Who is asking."""
    return {"name": person.name, "role": person.role}


@api.get("/datasets", response_model=list[shapes.DatasetShape], tags=["asking"])
async def list_datasets(request: Request, person: Reader) -> list[dict[str, Any]]:
    """The datasets that the account may ask; all of them for an owner."""
    return await blocking(partial(_described, parts(request), person))


@api.post("/datasets/{dataset}/plan", response_model=shapes.PreviewShape, tags=["asking"])
async def plan(
    request: Request, person: Reader, dataset: shapes.DatasetName, question: shapes.QuestionShape
) -> dict[str, object]:
    """What a question would buy and cost. Free: no data are read."""
    limited(request, "plan", person.name)
    return (await previewed(parts(request), person.name, dataset, asked_of(question))).to_dict()


@api.post(
    "/datasets/{dataset}/ask",
    response_model=shapes.AnswerShape,
    status_code=202,
    responses={200: {"model": shapes.AnswerShape, "description": "Asked before"}},
    tags=["asking"],
)
async def ask(
    request: Request, person: Asker, dataset: shapes.DatasetName, question: shapes.AskShape
) -> Response:
    """Ask, once for each request id: the job that answers, to be looked at under /answers."""
    job, new = await asked(request, person, dataset, asked_of(question), question.request_id)
    return await blocking(lambda: _json(job.to_dict(), 202 if new else 200))


@api.post("/answers/{answer}/cancel", response_model=shapes.AnswerShape, tags=["answers"])
async def cancel(request: Request, person: Asker, answer: shapes.Identity) -> Response:
    """End a question that is under way. It costs nothing if its data were not read yet."""
    job = await cancelled(request, person, answer)
    return await blocking(lambda: _json(job.to_dict()))


@api.get("/answers", response_model=list[shapes.AnswerShape], tags=["answers"])
async def list_answers(
    request: Request,
    person: Reader,
    dataset: shapes.OfDataset = None,
    before: shapes.Before = None,
    limit: shapes.AnswersLength = shapes.MOST_ANSWERS,
) -> Response:
    """The account's questions, newest first; of a dataset that it may view, everybody's.

    A page ends after ``limit``, or after 100, or once it has 4 MB: the id of its last answer, as
    ``before``, gives the next one, whose address is in the header ``Link``.
    """
    service, most = parts(request), min(limit, shapes.MOST_ANSWERS)
    page = partial(_page, service, person, dataset, before, most)
    body, last = await in_turn(service, person.name, page)
    of = "" if dataset is None else f"&dataset={dataset}"
    link = {"link": f'<?limit={limit}{of}&before={last}>; rel="next"'} if last else None
    return Response(body, headers=link, media_type="application/json")


@api.get("/answers/{answer}/csv", response_class=Response, tags=["answers"])
async def get_csv(request: Request, person: Reader, answer: shapes.Identity) -> Response:
    """The answer's items as CSV."""
    job = await found(request, person, answer)
    if job.release is None:
        raise Problem(404, "not_found", "This question has no answer to download.")
    text = await in_turn(parts(request), person.name, job.release.to_csv)
    return Response(text, media_type="text/csv")


@api.get("/datasets/{dataset}/budget", response_model=shapes.BudgetShape, tags=["asking"])
async def budget(
    request: Request, person: Reader, dataset: shapes.DatasetName
) -> dict[str, object]:
    """What is left for the account; the end of a question moves it at a tick."""
    return await blocking(partial(_budget, parts(request), person.name, dataset))


@api.get("/keys", response_model=list[shapes.KeyShape], tags=["account"])
async def list_keys(request: Request, person: Person) -> list[dict[str, Any]]:
    """The account's API keys, without their secrets."""
    return await blocking(partial(keys_of, parts(request), person.name))


@api.post("/keys", response_model=shapes.MadeKeyShape, status_code=201, tags=["account"])
async def make_key(request: Request, person: Changer, new: shapes.NewKeyShape) -> dict[str, str]:
    """A new API key, shown this once. It ends with a new password and with the key that made it."""
    make = partial(parts(request).accounts.new_key, person.name, new.label, new.scope, new.days)
    return {"key": await blocking(partial(make, person, noting_key(request, person)))}


@api.delete("/keys/{key}", response_model=shapes.DoneShape, tags=["account"])
async def revoke_key(request: Request, person: Changer, key: shapes.Identity) -> dict[str, bool]:
    """End a key."""
    if not await blocking(partial(parts(request).accounts.revoke_key, person.name, key)):
        raise Problem(404, "not_found", "There is no such key of yours.")
    return {"done": True}


@api.get("/sessions", response_model=list[shapes.SessionShape], tags=["account"])
async def list_sessions(request: Request, person: Person) -> list[dict[str, Any]]:
    """Where the account is logged in."""
    find = parts(request).accounts.sessions
    sessions = await blocking(partial(find, person.name, request.cookies.get(SESSION, "")))
    return [
        {"id": one.id, "begun": one.since, "agent": one.agent, "here": one.here} for one in sessions
    ]


@api.delete("/sessions/{session}", response_model=shapes.DoneShape, tags=["account"])
async def end_session(
    request: Request, person: Changer, session: shapes.Identity
) -> dict[str, bool]:
    """End a session of the account's."""
    if not await blocking(partial(parts(request).accounts.end_session, person.name, session)):
        raise Problem(404, "not_found", "There is no such session of yours.")
    return {"done": True}


def keys_of(service: Parts, name: str) -> list[dict[str, Any]]:
    """An account's keys, as its person and the owners may see them."""
    return [
        {"id": key.id, "label": key.label, "scope": key.scope, "expires": key.until}
        for key in service.accounts.keys(name)
    ]


def asked_of(question: shapes.QuestionShape) -> Asked:
    """The question as a value."""
    where = tuple((one.column, one.verb, one.value) for one in question.where)
    wanted = (question.column, question.k, question.epsilon)
    by = None if question.measure is None else _ranked_by(question.measure)
    groups = question.groups
    grouped_by = None if groups is None else GroupedBy.from_dict(groups.model_dump())
    return Asked(*wanted, where, question.counts, question.at_least, None, by, grouped_by)


def _ranked_by(measure: shapes.MeasureShape) -> RankedBy:
    if (measure.of == "sum") != (measure.column is not None):
        raise Problem(400, "invalid", "A sum names its column, and rows have none.")
    if measure.of == "rows" and measure.unit != "1":
        raise Problem(400, "invalid", "Rows have no unit; leave it out.")
    bounds = tuple(measure.max_per_item)
    return RankedBy(measure.column, measure.unit, bounds, measure.max_total)


async def previewed(service: Parts, name: str, dataset: str, asked: Asked) -> Preview:
    """The preview of a question that the account might ask."""
    known = await blocking(partial(checked, service, name, dataset, asked))
    account = await blocking(partial(service.datasets.account, dataset))
    share = await blocking(partial(service.datasets.allowance, dataset, name))
    assert share is not None  # checked above
    async with service.planning.turn(name):
        return await blocking(partial(preview, known, account, share, asked))


async def asked(
    request: Request, person: User, dataset: str, question: Asked, request_id: str | None
) -> tuple[Job, bool]:
    """The job for a question, started if it is new."""
    service = parts(request)
    limited(request, "question", person.name)
    await blocking(partial(checked, service, person.name, dataset, question))
    job, new = await blocking(
        partial(service.jobs.ask, person, dataset, question, request_id, service.desk.worker)
    )
    # Asked again, a question in doubt is looked up anew: it may be settled or written off by now.
    if new or job.state == IN_DOUBT:
        lane = await blocking(partial(service.datasets.lane, dataset))
        service.desk.submit(job.id, job.user, lane)
    return job, new


async def found(request: Request, person: User, answer: str) -> Job:
    """A job that the account may see; final ones are remembered."""
    service = parts(request)
    job = await blocking(partial(service.jobs.find, answer))
    if job.user != person.name and not person.sees(job.dataset):
        raise no_such_answer()
    if job.state == ANSWERED:
        body = await blocking(lambda: json.dumps(job.to_dict()).encode())
        service.remembered.put(job.id, job.user, job.dataset, body)
    return job


async def cancelled(request: Request, person: User, answer: str) -> Job:
    """A job that is ended by its analyst or by an owner of its dataset."""
    job = await found(request, person, answer)
    if not person.may_end(job.user, job.dataset):
        raise Problem(403, "owner_only", "Only its analyst and the owners may end a question.")
    await noted(request, person, analyst=job.user, dataset=job.dataset)
    return await blocking(partial(guarded(parts(request).jobs, person).cancel, job.id))


def listed(
    service: Parts, person: User, dataset: str | None, before: str | None, limit: int
) -> list[Job]:
    """A page of the jobs that the account may see."""
    whose = None if dataset is not None and person.sees(dataset) else person.name
    return service.jobs.history(whose, dataset, limit, before)


def _page(
    service: Parts, person: User, dataset: str | None, before: str | None, most: int
) -> tuple[bytes, str]:
    """A page of answers as it is sent, and the last one's id where the page is full."""
    page: list[str] = []
    size, last = 0, before
    while len(page) < most and size < shapes.MOST_BYTES:
        # Few at a time: what the page has no room for is not read.
        jobs = listed(service, person, dataset, last, min(most - len(page), AT_A_TIME))
        for job in jobs:
            if size < shapes.MOST_BYTES:
                page.append(json.dumps(job.to_dict() | {"cause": None}))
                size, last = size + len(page[-1]), job.id
        if not jobs:
            return _array(page), ""
    return _array(page), last or ""


def _array(entries: list[str]) -> bytes:
    return f"[{', '.join(entries)}]".encode()


def metered(service: Parts, dataset: str) -> bool:
    """Whether the owner fixed the price."""
    return fixed_price(service.datasets, dataset)


def checked(service: Parts, name: str, dataset: str, asked: Asked) -> Dataset:
    """The dataset, when the question can be put to it; all by public rules."""
    return may_be_asked(service.datasets, name, dataset, asked)


def _described(service: Parts, person: User) -> list[dict[str, Any]]:
    datasets = service.datasets
    return [
        {
            "name": one.name,
            "title": one.title,
            "columns": list(one.columns),
            "filters": dict(one.filters),
            "price": "fixed" if metered(service, one.name) else "flexible",
            "state": one.state or datasets.account(one.name).state,
            "sql": one.sql,
        }
        for one in datasets.open_to(person.name, person.sees)
    ]


def _budget(service: Parts, name: str, dataset: str) -> dict[str, object]:
    service.datasets.asked_by(dataset, name)
    account = service.datasets.account(dataset)
    share = service.datasets.allowance(dataset, name)
    assert share is not None  # checked above
    epsilon, delta = account.budget.guarantee
    # A share may have been lowered below what was spent of it.
    left = {key: max(NONE, min(value, account.left[key])) for key, value in share.left.items()}
    return {
        "dataset": dataset,
        "state": account.state,
        "epsilon": epsilon,
        "delta": delta,
        "summary": what_is_left(left, share.limits),
        "limits": as_text(share.limits),
        "spent": as_text(share.spent),
        "left": as_text(left),
    }


def _json(record: dict[str, object], status: int = 200) -> Response:
    return Response(json.dumps(record), status, media_type="application/json")
