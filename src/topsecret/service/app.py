"""The application of one worker process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from topsecret import __version__
from topsecret.errors import TopSecretError
from topsecret.service import problems
from topsecret.service.api import api
from topsecret.service.api_owner import owner_api
from topsecret.service.api_saved import saved_api
from topsecret.service.api_schedules import schedules_api
from topsecret.service.api_sql import sql_api
from topsecret.service.auth.dependencies import FIRST_PASSWORD
from topsecret.service.logs import configure, log
from topsecret.service.middleware import API, Edge
from topsecret.service.settings import Settings
from topsecret.service.state import Parts, blocking
from topsecret.service.stored_answers import StoredAnswers
from topsecret.service.web.account_pages import account_pages
from topsecret.service.web.analyst_pages import pages
from topsecret.service.web.life_pages import life_pages
from topsecret.service.web.openid_pages import openid_pages
from topsecret.service.web.owner_pages import owner_pages
from topsecret.service.web.rendering import refused
from topsecret.service.web.saved_pages import saved_pages
from topsecret.service.web.team_pages import team_pages

ENVIRONMENT = "TOPSECRET_SERVICE"
ROUTERS = (
    *(api, sql_api, saved_api, schedules_api, owner_api),
    *(pages, saved_pages, account_pages, owner_pages, team_pages, life_pages, openid_pages),
)
STATIC = Path(__file__).parent / "web" / "static"


def create_app(settings: Settings) -> FastAPI:
    """The application with these settings."""
    parts = Parts(settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        parts.desk.open()
        log("started", worker=parts.desk.worker)
        yield
        finished = parts.close()
        log("stopped", worker=parts.desk.worker, finished=finished)
        if not finished:
            # Questions that still run stay reserved in the ledger: in doubt, never lost.
            os._exit(0)

    app = FastAPI(
        title="topsecret",
        version=__version__,
        summary="Private top lists for a team.",
        description="Every answer is differentially private and paid for from a budget.",
        openapi_url=None,  # below: made once
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.parts = parts
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

    async def undone(who: str, entry: int, status: int) -> None:
        told = {"entry": entry, "status": status}
        await blocking(partial(parts.audit.note, who, "refused", told))

    app.add_middleware(StoredAnswers, parts=parts)
    app.add_middleware(
        Edge,
        metrics=parts.metrics,
        https=settings.https,
        prefix=settings.prefix,
        refused=undone,
    )
    app.add_exception_handler(problems.Problem, _problem)
    app.add_exception_handler(TopSecretError, _own)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _validation)
    described = cache(partial(_with_keys, app.openapi, settings.prefix))
    app.openapi = described  # type: ignore[method-assign]  # as FastAPI advises
    as_bytes = cache(lambda: JSONResponse(described()).body)

    async def openapi(_request: Request) -> Response:
        return Response(as_bytes(), media_type="application/json")

    app.add_route("/openapi.json", openapi)
    return app


def from_environment() -> FastAPI:
    """The application of a worker that ``topsecret serve`` started."""
    configure()
    _end_with_the_parent()
    return create_app(Settings.from_json(os.environ[ENVIRONMENT]))


def _end_with_the_parent() -> None:
    """A worker whose supervisor was killed stops as if it had been told to."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            wait([parent.sentinel])
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=watch, name="parent", daemon=True).start()


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, problems.Problem)
    if not _for_programs(request):
        if error.error == FIRST_PASSWORD:
            return RedirectResponse("/account/password", 303)
        # What the trail has is refused in so many words: it has to say that it was not done.
        if error.status == 401 and not hasattr(request.state, "noted"):
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            to = f"?to={quote(path, safe='/')}" if request.method == "GET" else ""
            return RedirectResponse(f"/login{to}", 303)
        return await refused(request, error)
    shape = {
        "error": error.error,
        "message": error.message,
        "request_id": request.state.request_id,
    }
    return JSONResponse(shape, error.status, error.headers)


async def _own(request: Request, error: Exception) -> Response:
    assert isinstance(error, TopSecretError)
    problem = problems.of_error(error)
    if problem.status >= 500:
        log("failure", request_id=request.state.request_id, kind=type(error).__name__)
    return await _problem(request, problem)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = problems.of_status(error.status_code)
    problem.headers |= dict(error.headers or {})
    return await _problem(request, problem)


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await _problem(request, problems.of_validation(error.errors()))


def _for_programs(request: Request) -> bool:
    path = request.url.path
    return path.startswith(("/api", "/metrics", "/openapi")) or "text/html" not in (
        request.headers.get("accept", "")
    )


def _with_keys(plain: Callable[[], dict[str, Any]], prefix: str) -> dict[str, Any]:
    """The schema with the ways to be recognised, on all paths but those open to all."""
    schema = plain()
    if prefix:
        schema["servers"] = [{"url": prefix}]
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "An API key, tsk_…"}
    }
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            operation["security"] = [] if path == f"{API}/health" else [{"key": []}]
    return schema


__all__ = ["ENVIRONMENT", "create_app", "from_environment"]
