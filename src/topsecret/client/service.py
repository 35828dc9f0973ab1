"""A service and the key of an account: its calls, without any package beside Python's own.

The service pays, counts and draws; this is a thin layer over its HTTP interface.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from topsecret.client.answers import (
    Answer,
    Answers,
    Budget,
    Preview,
    SavedQuestion,
    Schedule,
    answer_of,
    answers_of,
    budget_of,
    either,
    schedule_of,
)
from topsecret.client.questions import (
    Bound,
    Kinds,
    Summed,
    Where,
    grouped,
    measured,
    question,
    warn_weak,
)
from topsecret.errors import BudgetExceeded, InvalidParameter, ServiceError

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class Service:
    """A service and the key of an account. Make one with :func:`connect`.

    Parameters: ``dataset``: the dataset's name, one of ``datasets()``; ``item``: the column to
    rank; ``k``: how many items; "auto" for as many as stand out, "all" for all that are safe;
    ``epsilon``: how much of the share to spend; left out where the owner fixed the price;
    ``where``: conditions ``(column, operator, value)`` that keep rows; ``counts``: whether noisy
    counts are added; ``at_least``: name what surely has so many people; ``measure``: "persons",
    "rows" or ``Sum("column")``; ``max_per_item``: the most that one person adds to one item, by
    rows or sums; ``max_total``: a bound on all that one person adds; ``request_id``: a name of your
    choice: the same one finds the same answer; ``wait``: how many seconds to wait for the answer;
    ``by``: the column that defines the groups; ``groups``: the groups to answer for, by their
    values; ``disjoint``: whether each person is kept in one group alone; ``name``: the name of a
    saved question; ``answer``: the answer's id; ``times``: how many times it is asked; ``every``:
    how often it is asked; ``start``: when it is asked first; now unless given.
    """

    url: str
    """The service's address."""
    key: str = field(repr=False)
    """The account's API key; it is not shown."""
    patience: float = 30.0
    """Seconds to wait for one reply."""

    def datasets(self) -> list[str]:
        """The names of the datasets that the account may ask."""
        return [str(one["name"]) for one in self._call("GET", "/datasets")]

    def budget(self, dataset: str) -> Budget:
        """What is left of a dataset for the account."""
        found = self._call("GET", f"/datasets/{_name(dataset)}/budget")
        return budget_of(found)

    def plan(
        self,
        dataset: str,
        *,
        item: str,
        k: int | Literal["auto", "all"] = 10,
        epsilon: float | None = None,
        where: Where = (),
        counts: bool = False,
        at_least: int | None = None,
        measure: str | Summed = "persons",
        max_per_item: Bound | Sequence[Bound] | None = None,
        max_total: Bound | None = None,
        by: str | None = None,
        groups: Sequence[str | int] = (),
        disjoint: bool = False,
    ) -> Preview:
        """What a question would buy and cost. It is free."""
        kinds = self._kinds(dataset)
        asked = question(item, k, epsilon, where, counts, at_least, kinds)
        asked |= measured(measure, max_per_item, max_total) | grouped(by, groups, disjoint, kinds)
        found = self._call("POST", f"/datasets/{_name(dataset)}/plan", asked)
        return Preview(**{name: found[name] for name in Preview.__slots__})

    def top_k(
        self,
        dataset: str,
        *,
        item: str,
        k: int | Literal["auto", "all"] = 10,
        epsilon: float | None = None,
        where: Where = (),
        counts: bool = False,
        at_least: int | None = None,
        measure: str | Summed = "persons",
        max_per_item: Bound | Sequence[Bound] | None = None,
        max_total: Bound | None = None,
        request_id: str | None = None,
        wait: float = 600.0,
    ) -> Answer:
        """Name the ``k`` most common items of a dataset, paid for from the account's share.

        ``measure="rows"`` ranks by rows and ``Sum("price")`` by a sum, with ``max_per_item`` and
        ``max_total`` as in the library.

        ``epsilon`` is left out where the owner fixed the price. The same ``request_id`` finds the
        same answer, so that a call whose end was not seen can be repeated. After ``wait`` seconds
        a ``ServiceError`` is raised; the question goes on at the service.
        """
        asked = question(item, k, epsilon, where, counts, at_least, self._kinds(dataset))
        asked |= measured(measure, max_per_item, max_total)
        asked["request_id"] = request_id or secrets.token_hex(12)
        job = self._ended(self._call("POST", f"/datasets/{_name(dataset)}/ask", asked), wait)
        answer = answer_of(job["id"], job["answer"])
        # What the owner has fixed; an epsilon of the caller's was looked at before it was asked.
        warn_weak(answer.epsilon if epsilon is None else 0, answer.delta)
        return answer

    def top_k_by(
        self,
        dataset: str,
        *,
        by: str,
        groups: Sequence[str | int],
        disjoint: bool = False,
        item: str,
        k: int = 10,
        epsilon: float,
        where: Where = (),
        counts: bool = False,
        measure: str | Summed = "persons",
        max_per_item: Bound | Sequence[Bound] | None = None,
        max_total: Bound | None = None,
        request_id: str | None = None,
        wait: float = 600.0,
    ) -> Answers:
        """``top_k`` for each value of the column ``by`` that ``groups`` lists, as one question.

        With ``disjoint`` each person is kept in one group alone, and each group has the whole
        budget; without it a person counts in all of theirs, which share it.

        Parameters: ``k``: how many items each list names; ``epsilon``: what all lists may cost
        together.
        """
        kinds = self._kinds(dataset)
        asked = question(item, k, epsilon, where, counts, None, kinds)
        asked |= measured(measure, max_per_item, max_total) | grouped(by, groups, disjoint, kinds)
        asked["request_id"] = request_id or secrets.token_hex(12)
        job = self._ended(self._call("POST", f"/datasets/{_name(dataset)}/ask", asked), wait)
        answers = answers_of(job)
        warn_weak(0, answers.delta)
        return answers

    def answer(self, answer: str, *, wait: float = 600.0) -> Answer | Answers:
        """An answer by its id, that of a schedule's run, say."""
        return either(self._ended(self._call("GET", f"/answers/{_saved(answer)}"), wait))

    def saved(self) -> list[SavedQuestion]:
        """The questions that the account keeps, by name."""
        found = self._call("GET", "/saved")
        return [SavedQuestion(one["name"], one["dataset"], one["words"]) for one in found]

    def save(
        self,
        name: str,
        dataset: str,
        *,
        item: str,
        k: int | Literal["auto", "all"] = 10,
        epsilon: float | None = None,
        where: Where = (),
        counts: bool = False,
        at_least: int | None = None,
        measure: str | Summed = "persons",
        max_per_item: Bound | Sequence[Bound] | None = None,
        max_total: Bound | None = None,
        by: str | None = None,
        groups: Sequence[str | int] = (),
        disjoint: bool = False,
    ) -> None:
        """Keep a question under a name, in place of another of that name. Nothing is asked."""
        kinds = self._kinds(dataset)
        asked = question(item, k, epsilon, where, counts, at_least, kinds)
        asked |= measured(measure, max_per_item, max_total) | grouped(by, groups, disjoint, kinds)
        self._call("PUT", f"/saved/{_saved(name)}", {"dataset": dataset, "question": asked})

    def ask_saved(
        self, name: str, *, request_id: str | None = None, wait: float = 600.0
    ) -> Answer | Answers:
        """Ask a saved question; while the data are as they were, its stored answer is free."""
        body = {"request_id": request_id or secrets.token_hex(12)}
        answer = either(self._ended(self._call("POST", f"/saved/{_saved(name)}/ask", body), wait))
        warn_weak(answer.epsilon, answer.delta)
        return answer

    def forget_saved(self, name: str) -> None:
        """Delete a saved question; its answers stay."""
        self._call("DELETE", f"/saved/{_saved(name)}")

    def schedule(
        self,
        name: str,
        *,
        times: int,
        every: Literal["day", "week", "month"] = "week",
        start: datetime | None = None,
        request_id: str | None = None,
    ) -> Schedule:
        """Ask a saved question at set times, all of them paid for now.

        Each run is a question of its own. The first is at ``start``, in UTC unless it says
        otherwise, or now. The same ``request_id`` finds the same schedule.
        """
        body: dict[str, object] = {"every": every, "times": times}
        body |= {} if start is None else {"start": start.isoformat()}
        body["request_id"] = request_id or secrets.token_hex(12)
        return schedule_of(self._call("POST", f"/saved/{_saved(name)}/schedule", body))

    def schedules(self) -> list[Schedule]:
        """The account's schedules, the newest first."""
        return [schedule_of(one) for one in self._call("GET", "/schedules")]

    def end_schedule(self, schedule: Schedule | str) -> None:
        """Give up the runs to come, and get back what is held for them.

        Once nothing is to come, the same forgets the schedule; its answers stay.
        """
        identity = schedule if isinstance(schedule, str) else schedule.id
        self._call("DELETE", f"/schedules/{_saved(identity)}")

    def _kinds(self, dataset: str) -> Kinds:
        """Looks up the kinds of a dataset's columns, once."""

        @cache
        def found() -> dict[str, str]:
            listed = self._call("GET", "/datasets")
            return next((one["filters"] for one in listed if one["name"] == dataset), {})

        return found

    def _ended(self, job: Any, wait: float) -> Any:
        """The question, once it has an answer."""
        deadline, pause = time.monotonic() + wait, 0.1
        while job["state"] == "working":
            if time.monotonic() > deadline:
                raise ServiceError(f"question {job['id']} is not answered yet; ask for it again")
            time.sleep(pause)
            pause = min(2 * pause, 2.0)
            job = self._call("GET", f"/answers/{job['id']}")
        if job["answer"] is None:
            kind = BudgetExceeded if job["error"] == "budget_exceeded" else ServiceError
            raise kind(str(job["message"]))
        return job

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        from http.client import HTTPException  # here: importing topsecret must stay quick
        from ssl import SSLCertVerificationError
        from urllib.error import HTTPError
        from urllib.request import Request

        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        request = Request(f"{self.url}/api/v1{path}", data=data, headers=headers, method=method)
        opener = _opener(urlsplit(self.url).scheme)
        try:
            try:
                with opener.open(request, timeout=self.patience) as reply:
                    return json.load(reply)
            except HTTPError as error:
                status, text = error.code, error.read(100_000)
        except (OSError, ValueError, HTTPException) as error:
            if isinstance(getattr(error, "reason", None), SSLCertVerificationError):
                raise ServiceError(
                    f"{self.url} has a certificate that is not trusted here, or not for that name; "
                    "let SSL_CERT_FILE name one that you made yourself"
                ) from None
            raise ServiceError(f"{self.url} does not answer; check that it runs") from None
        raise _refusal(status, text)


def connect(url: str, key: str) -> Service:
    """A service at its address, asked in the name of the account that made the key.

    >>> connect("https://topsecret.example.org/", "tsk_1_secret")
    Service(url='https://topsecret.example.org', patience=30.0)

    Parameters: ``url``: the service's address, beginning with https://; ``key``: an API key, which
    the account makes on its page.
    """
    try:
        parts = urlsplit(url)
        whole = parts.port != 0 and "@" not in parts.netloc and not any(map(str.isspace, url))
    except ValueError:  # a port that is no number
        whole = False
    if not whole:
        raise InvalidParameter(
            "a service's address is like https://topsecret.example.org:8443, without blanks, a "
            "name or a password"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter("a service's address begins with https://")
    if parts.scheme == "http" and parts.hostname not in LOCAL:
        raise InvalidParameter(
            "a key that is sent without https can be read on the way; write https://"
        )
    key = key.strip()  # a file ends with a line break
    if not key:
        raise InvalidParameter("a service needs an API key; make one under your account")
    if not (key.isascii() and key.isprintable()):  # it could not be sent, and must not be shown
        raise InvalidParameter("an API key is one line like tsk_…; copy it whole and alone")
    return Service(url.rstrip("/"), key)


@cache
def _opener(scheme: str) -> OpenerDirector:
    """Opens addresses; the key goes to the one that was named, by no redirect or proxy to another.

    Through a proxy, https goes as it is; http would be read by it.
    """
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    return build_opener(NoRedirects, ProxyHandler(None if scheme == "https" else {}))


def _refusal(status: int, text: bytes) -> Exception:
    """What a refused call raises, in the service's words."""
    try:
        message = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        message = f"the service replied with status {status}"
    if status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
        return InvalidParameter(message)
    return ServiceError(message)


def _name(dataset: str) -> str:
    if not dataset or not all(c.isascii() and (c.isalnum() or c in "_-") for c in dataset):
        raise InvalidParameter(f"there is no dataset {dataset!r}; datasets() lists yours")
    return dataset


def _saved(name: str) -> str:
    """A name or an id, which is a part of an address."""
    if not name or not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
        raise InvalidParameter(
            f"{name!r} must be a name of small letters, digits, dots, dashes and underscores"
        )
    return name
