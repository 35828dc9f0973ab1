"""The API for saved questions: keep, list, preview, ask again, forget."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from topsecret.service import shapes
from topsecret.service.api import Asker, Reader, asked, asked_of, checked, found, previewed
from topsecret.service.auth.dependencies import limited, saver
from topsecret.service.auth.people import User
from topsecret.service.jobs.job import Asked
from topsecret.service.middleware import API
from topsecret.service.problems import RESPONSES, Problem
from topsecret.service.saved_questions import Saved
from topsecret.service.state import blocking, parts

saved_api = APIRouter(prefix=API, responses=RESPONSES, tags=["saved questions"])
Saver = Annotated[User, Depends(saver)]


@saved_api.get("/saved", response_model=list[shapes.SavedShape])
async def list_saved(request: Request, person: Reader) -> Response:
    """The account's saved questions, by name."""
    found = await blocking(partial(parts(request).saved.all, person.name))
    # As they are: the page takes what the schema of requests does not.
    body = json.dumps([one.to_dict() for one in found])
    return Response(body, media_type="application/json")


@saved_api.put("/saved/{name}", response_model=shapes.DoneShape)
async def save(
    request: Request, person: Saver, name: shapes.SavedName, given: shapes.SaveShape
) -> dict[str, bool]:
    """Keep a question, or that of an answer of yours, under a name; nothing is asked."""
    if given.answer is not None and given.dataset is None and given.question is None:
        dataset, question = await of_answer(request, person, given.answer)
    elif given.answer is None and given.dataset is not None and given.question is not None:
        dataset, question = given.dataset, asked_of(given.question)
        await blocking(partial(checked, parts(request), person.name, dataset, question))
    else:
        raise Problem(400, "invalid", "Name a dataset and a question, or an answer of yours.")
    await blocking(partial(parts(request).saved.save, person, name, dataset, question))
    return {"done": True}


@saved_api.delete("/saved/{name}", response_model=shapes.DoneShape)
async def forget(request: Request, person: Saver, name: shapes.SavedName) -> dict[str, bool]:
    """Forget a saved question; its answers stay."""
    await blocking(partial(parts(request).saved.delete, person, name))
    return {"done": True}


@saved_api.post("/saved/{name}/plan", response_model=shapes.PreviewShape)
async def plan_saved(request: Request, person: Reader, name: shapes.SavedName) -> dict[str, object]:
    """What a saved question would buy and cost. Free: no data are read."""
    limited(request, "plan", person.name)
    one = await kept(request, person, name)
    return (await previewed(parts(request), person.name, one.dataset, one.asked)).to_dict()


@saved_api.post(
    "/saved/{name}/ask",
    response_model=shapes.AnswerShape,
    status_code=202,
    responses={200: {"model": shapes.AnswerShape, "description": "Asked before"}},
)
async def ask_saved(
    request: Request, person: Asker, name: shapes.SavedName, given: shapes.AgainShape
) -> Response:
    """Ask a saved question again, once for each request id; the same answer is free."""
    one = await kept(request, person, name)
    job, new = await asked(request, person, one.dataset, one.asked, given.request_id)
    return Response(json.dumps(job.to_dict()), 202 if new else 200, media_type="application/json")


async def kept(request: Request, person: User, name: str) -> Saved:
    """A saved question of the account's."""
    return await blocking(partial(parts(request).saved.get, person.name, name))


async def of_answer(request: Request, person: User, answer: str) -> tuple[str, Asked]:
    """The dataset and the question of an answer of the account's own."""
    job = await found(request, person, answer)
    if job.user != person.name:
        raise Problem(403, "not_yours", "Save questions of your own.")
    return job.dataset, job.asked
