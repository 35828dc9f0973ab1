"""How pages are drawn: templates, the tokens of their forms, shares of a budget as bars."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from topsecret import __version__
from topsecret.ledger import Account, Allowance
from topsecret.ledger.amounts import Amounts
from topsecret.results.export import printable
from topsecret.service.auth import credentials
from topsecret.service.auth.accounts import User
from topsecret.service.auth.dependencies import SESSION, visitor
from topsecret.service.jobs.queue import Job
from topsecret.service.problems import Problem

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
STATES = {
    "working": "Working",
    "answered": "Answered",
    "refused": "Refused",
    "failed": "Failed",
    "in-doubt": "In doubt",
}


SCOPES = {
    "ask": "ask and read",
    "read": "read answers",
    "metrics": "fetch metrics",
    "all": "do all that you may",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One item of an answer as a bar. Its length is its rank: counts are not published."""

    rank: str
    label: str
    width: int


def bars(job: Job) -> list[Bar]:
    """The items of an answer; a set without order has bars of one length."""
    release = job.release
    if release is None:
        return []
    count = len(release.items)
    return [
        Bar(
            str(place + 1) if release.ordered else "",
            printable(item),
            100 - round(70 * place / max(count - 1, 1)) if release.ordered else 100,
        )
        for place, item in enumerate(release.items)
    ]


def share_left(left: Amounts, limits: Amounts) -> int:
    """The scarcest resource, as whole percent, rounded down."""
    parts = [left[name] / limit for name, limit in limits.items() if limit]
    return max(0, int(100 * min(parts, default=0)))


def percent_left(account: Account, share: Allowance | None = None) -> int:
    """What is left of a budget, or of an analyst's share of it."""
    whole = share_left(account.left, account.budget.limits)
    if share is None:
        return whole
    left = {key: min(value, account.left[key]) for key, value in share.left.items()}
    return share_left(left, share.limits)


def render(
    request: Request, template: str, person: User | None, status: int = 200, **values: Any
) -> HTMLResponse:
    """A page."""
    token = request.cookies.get(SESSION, "")
    text = _TEMPLATES.get_template(template).render(
        person=person,
        csrf=credentials.csrf_token(token) if person is not None else "",
        path=request.url.path,
        version=__version__,
        states=STATES,
        scopes=SCOPES,
        **values,
    )
    return HTMLResponse(text, status)


async def refused(request: Request, problem: Problem) -> HTMLResponse:
    """A problem as a page."""
    person = None if problem.status >= 500 else await visitor(request)
    page = render(
        request,
        "problem.html",
        person,
        problem.status,
        title=_TITLES.get(problem.status, "That did not work"),
        message=problem.message,
        request_id=request.state.request_id,
    )
    page.headers.update(problem.headers)
    return page


_TITLES = {
    403: "Not for this account",
    404: "Nothing here",
    409: "Already used",
    429: "A little slower, please",
    503: "Back in a moment",
}
