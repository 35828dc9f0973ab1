"""The API for analysts who ask in SQL, where the owner of a dataset allows it."""

from __future__ import annotations

import json
from functools import partial

from fastapi import APIRouter, Request, Response

from topsecret.service import shapes
from topsecret.service.api import Asker, Reader, asked, previewed
from topsecret.service.auth.dependencies import limited
from topsecret.service.jobs.job import Asked
from topsecret.service.middleware import API
from topsecret.service.pasted_sql import asked_in_sql
from topsecret.service.problems import RESPONSES
from topsecret.service.state import Parts, blocking, parts

sql_api = APIRouter(prefix=API, responses=RESPONSES, tags=["asking"])


@sql_api.post("/datasets/{dataset}/sql/plan", response_model=shapes.PreviewShape)
async def plan_sql(
    request: Request, person: Reader, dataset: shapes.DatasetName, question: shapes.SqlShape
) -> dict[str, object]:
    """What a query would buy and cost, or the clause that is refused. Free: no data are read."""
    limited(request, "plan", person.name)
    service = parts(request)
    found = await from_query(service, person.name, dataset, question.query, question.epsilon)
    return (await previewed(service, person.name, dataset, found)).to_dict()


@sql_api.post(
    "/datasets/{dataset}/sql",
    response_model=shapes.AnswerShape,
    status_code=202,
    responses={200: {"model": shapes.AnswerShape, "description": "Asked before"}},
)
async def ask_sql(
    request: Request, person: Asker, dataset: shapes.DatasetName, question: shapes.AskSqlShape
) -> Response:
    """Ask in SQL, once for each request id: the job that answers, found under /answers."""
    limited(request, "plan", person.name)
    service = parts(request)
    found = await from_query(service, person.name, dataset, question.query, question.epsilon)
    job, new = await asked(request, person, dataset, found, question.request_id)
    return Response(json.dumps(job.to_dict()), 202 if new else 200, media_type="application/json")


async def from_query(
    service: Parts, name: str, dataset: str, query: str, epsilon: float | None
) -> Asked:
    """The question that a query of the account's asks."""
    known = await blocking(partial(service.datasets.asked_by, dataset, name))
    find = partial(asked_in_sql, service.datasets, known, query, epsilon)
    return await service.opening.run(name, known.events, find)
