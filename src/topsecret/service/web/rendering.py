"""How pages are drawn: templates, the tokens of their forms, shares of a budget as bars."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from topsecret import __version__
from topsecret.ledger import Account, Allowance
from topsecret.ledger.amounts import Amounts
from topsecret.results.group_releases import Releases
from topsecret.results.receipt import guarantee, two_people
from topsecret.results.release import Release
from topsecret.service.auth import credentials
from topsecret.service.auth.dependencies import SESSION, visitor
from topsecret.service.auth.people import User
from topsecret.service.jobs.job import Job
from topsecret.service.problems import Problem
from topsecret.service.state import parts

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_LINKS = re.compile(r'\b(href|src|action|data-answer|data-plan)="/')
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
class Line:
    """One item of an answer, with no more than was released of it."""

    rank: str
    label: str
    said: str = ""
    """Its noisy count, or how many people it surely has."""
    width: float | None = None
    """The noisy count as a part of the longest interval, in percent; None without counts."""
    low: float = 0.0
    high: float = 0.0
    numbers: tuple[int, ...] = ()
    """What was released of it: its noisy count and the interval, or how many people at least."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One list of an answer."""

    heading: str
    """The group, in words; empty where there is one list."""
    release: Release
    lines: list[Line]


def lists(job: Job) -> list[Shown]:
    """The lists of an answer: one, or one for each group."""
    answer = job.release
    if answer is None:
        return []
    named = (
        {f"{answer.by} = {group}": one for group, one in answer.items()}
        if isinstance(answer, Releases)
        else {"": answer}
    )
    longest = max(map(_longest, named.values()), default=1)  # bars of all groups have one scale
    return [Shown(heading, one, lines(one, longest)) for heading, one in named.items()]


def _longest(release: Release) -> int:
    """How far the intervals of a list reach; at least 1."""
    return max([1, *(count + (release.half_width or 0) for count in release.counts or ())])


def lines(release: Release, longest: int) -> list[Line]:
    """The items of a list; bars are for counts alone, with their intervals."""
    named = release.ranked()
    if release.counts is None:
        surely = release.at_least or ()
        words = [f"at least {count:,} people" for count in surely] or [""] * len(named)
        numbers: list[tuple[int, ...]] = [(count,) for count in surely] or [()] * len(named)
        return [
            Line(rank, label, said, numbers=told)
            for (rank, label), said, told in zip(named, words, numbers, strict=True)
        ]
    within = release.half_width or 0
    found = []
    for place, ((rank, label), count) in enumerate(zip(named, release.counts, strict=True)):
        low, high = release.interval(place)
        width, *ends = (100 * max(0, value) / longest for value in (count, low, high))
        said = f"{count:,} ± {within:,} people"
        found.append(Line(rank, label, said, width, ends[0], ends[1], (count, max(0, low), high)))
    return found


EXPERT = frozenset(("Compared with", "Named when", "Mechanism", "Budget", "Made"))


def plain(job: Job) -> list[tuple[str, str]]:
    """The receipt for everybody."""
    return [one for one in _receipt(job) if one[0] not in EXPERT]


def expert(job: Job) -> list[tuple[str, str]]:
    """The numbers of the receipt."""
    return [one for one in _receipt(job) if one[0] in EXPERT]


def _receipt(job: Job) -> list[tuple[str, str]]:
    """What is true of the whole answer; with groups each list has a receipt of its own beside."""
    answer = job.release
    if answer is None:
        return []
    if not isinstance(answer, Releases):
        return list(answer.receipt)
    first = next(iter(answer.values()))
    of_all = {
        "Guarantee": guarantee(answer.epsilon, answer.delta, first.unit.adjacency),
        "Protected less": two_people(answer.epsilon, answer.delta),
        "All groups": f"{answer.together[:1].upper()}{answer.together[1:]}",
    }
    same = ("Protected", "Compared with", "Not covered", "Sharing", "Budget", "Made")
    shared = {label: text for label, text in first.receipt if label in same}
    whole = {"Protected": shared.pop("Protected"), **of_all, **shared}
    return list(whole.items())


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
    prefix = parts(request).settings.prefix
    if prefix:  # what people wrote is escaped: only our own templates have such attributes
        text = _LINKS.sub(rf'\1="{prefix}/', text)
    return HTMLResponse(text.encode(errors="replace"), status)  # whatever was stored once


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
    409: "Not possible now",
    429: "A little slower, please",
    503: "Back in a moment",
}
