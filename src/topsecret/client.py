"""A service, asked from Python by calls that look like the library's.

::

    service = topsecret.connect("https://topsecret.example.org", key)
    service.top_k("checkins", item="place", k=10, epsilon=0.5).items

The service pays, counts and draws; this is a thin layer over its HTTP interface, without any
package beside Python's own.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import urlsplit

from topsecret.errors import BudgetExceeded, InvalidParameter, ServiceError

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))
_VERBS = {"=": "is", "!=": "is not", ">=": "at least", "<=": "at most", "in": "one of"}

Scalar = str | int | float
Where = Sequence[tuple[str, str, Scalar | Sequence[str]]]
"""Conditions ``(column, operator, value)``; operators are =, !=, >=, <= and in."""


Bound = int | float | str


class Summed(Protocol):
    """The sum of a column, in multiples of a unit: ``topsecret.Sum``."""

    @property
    def column(self) -> str:
        """The column of numbers."""
        ...

    @property
    def unit(self) -> Any:
        """What values are rounded to."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service released."""

    id: str
    """Under which the service keeps it."""
    items: tuple[Any, ...]
    ordered: bool
    complete: bool
    epsilon: float
    delta: float
    counts: tuple[int, ...] | None
    """Noisy counts, where they were asked for."""
    half_width: int | None
    """Each true count lies within this of its noisy one with 95% probability."""
    at_least: tuple[int, ...] | None
    """How many persons each item surely has, with k="all"."""
    receipt: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left for the account of a key."""

    state: str
    epsilon: float
    delta: float
    summary: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What a question would buy and cost; no data are read for it."""

    fits: bool
    lead: int | None
    """How many persons an item must be ahead to be named with 95% probability."""
    again: int
    """How many such questions fit into what is left."""
    answer: str
    buys: str
    protects: str
    takes: str


@dataclass(frozen=True, slots=True)
class SavedQuestion:
    """A question that the account keeps at the service."""

    name: str
    dataset: str
    words: str
    """What it asks, in a few words."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service and the key of an account. Make one with :func:`connect`."""

    url: str
    key: str = field(repr=False)
    patience: float = 30.0
    """Seconds to wait for one reply."""

    def datasets(self) -> list[str]:
        """The names of the data sets that the account may ask."""
        return [str(one["name"]) for one in self._call("GET", "/datasets")]

    def budget(self, dataset: str) -> Budget:
        """What is left of a data set for the account."""
        found = self._call("GET", f"/datasets/{_name(dataset)}/budget")
        return Budget(found["state"], found["epsilon"], found["delta"], found["summary"])

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
    ) -> Preview:
        """What a question would buy and cost. It is free."""
        asked = _question(item, k, epsilon, where, counts, at_least)
        asked |= _measure(measure, max_per_item, max_total)
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
        """Name the ``k`` most common items of a data set, paid for from the account's share.

        ``measure="rows"`` ranks by rows and ``Sum("price")`` by a sum, with ``max_per_item`` and
        ``max_total`` as in the library.

        ``epsilon`` is left out where the owner fixed the price. The same ``request_id`` finds the
        same answer, so that a call whose end was not seen can be repeated. After ``wait`` seconds
        a ``ServiceError`` is raised; the question goes on at the service.
        """
        asked = _question(item, k, epsilon, where, counts, at_least)
        asked |= _measure(measure, max_per_item, max_total)
        asked["request_id"] = request_id or secrets.token_hex(12)
        answer = self._ended(self._call("POST", f"/datasets/{_name(dataset)}/ask", asked), wait)
        # What the owner has fixed; an epsilon of the caller's was looked at before it was asked.
        _warn_if_weak(answer.epsilon if epsilon is None else 0, answer.delta)
        return answer

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
    ) -> None:
        """Keep a question under a name, in place of another of that name. Nothing is asked."""
        asked = _question(item, k, epsilon, where, counts, at_least)
        asked |= _measure(measure, max_per_item, max_total)
        self._call("PUT", f"/saved/{_saved(name)}", {"dataset": dataset, "question": asked})

    def ask_saved(self, name: str, *, request_id: str | None = None, wait: float = 600.0) -> Answer:
        """Ask a saved question; while the data are as they were, its stored answer is free."""
        body = {"request_id": request_id or secrets.token_hex(12)}
        answer = self._ended(self._call("POST", f"/saved/{_saved(name)}/ask", body), wait)
        _warn_if_weak(answer.epsilon, answer.delta)
        return answer

    def forget_saved(self, name: str) -> None:
        """Delete a saved question; its answers stay."""
        self._call("DELETE", f"/saved/{_saved(name)}")

    def _ended(self, job: Any, wait: float) -> Answer:
        """The answer of a question, once it has one."""
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
        return _answer(job)

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        from urllib.error import HTTPError  # here: importing topsecret must stay quick
        from urllib.request import Request

        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        request = Request(f"{self.url}/api/v1{path}", data=data, headers=headers, method=method)
        try:
            with _opener().open(request, timeout=self.patience) as reply:
                return json.load(reply)
        except HTTPError as error:
            status, text = error.code, error.read(100_000)
        except (OSError, ValueError):
            raise ServiceError(f"{self.url} does not answer; check that it runs") from None
        raise _refusal(status, text)


def connect(url: str, key: str) -> Service:
    """A service at its address, asked in the name of the account that made the key.

    >>> connect("https://topsecret.example.org/", "tsk_1_secret")
    Service(url='https://topsecret.example.org', patience=30.0)
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter("a service's address begins with https://")
    if parts.scheme == "http" and parts.hostname not in LOCAL:
        raise InvalidParameter(
            "a key that is sent without https can be read on the way; write https://"
        )
    if not key:
        raise InvalidParameter("a service needs an API key; make one under your account")
    return Service(url.rstrip("/"), key)


@cache
def _opener() -> OpenerDirector:
    """Opens addresses; the key goes to the one that was named and, by no redirect, to another."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    return build_opener(NoRedirects)


def _question(
    item: str,
    k: int | str,
    epsilon: float | None,
    where: Where,
    counts: bool,
    at_least: int | None,
) -> dict[str, object]:
    conditions = []
    for column, operator, value in where:
        if operator not in _VERBS:
            raise InvalidParameter(f"operator {operator!r} must be one of: {', '.join(_VERBS)}")
        several = not isinstance(value, str | int | float)
        if several != (operator == "in"):
            raise InvalidParameter(
                f"{column!r} {operator} needs {'a list' if not several else 'one value'}"
            )
        listed = [str(part) for part in value] if several else [str(value)]  # type: ignore[union-attr]
        if several and any("," in part for part in listed):
            raise InvalidParameter(
                "a value of a list cannot hold a comma here; ask for it with '='"
            )
        conditions.append({"column": column, "verb": _VERBS[operator], "value": ", ".join(listed)})
    asked: dict[str, object] = {"column": item, "k": k}
    if epsilon is not None:
        _warn_if_weak(epsilon, 0)
        asked["epsilon"] = epsilon
    if at_least is not None:
        asked["at_least"] = at_least
    return (
        asked | ({"where": conditions} if conditions else {}) | ({"counts": True} if counts else {})
    )


def _warn_if_weak(epsilon: float, delta: float) -> None:
    from topsecret.accounting.weak_privacy import warn_if_weak

    warn_if_weak(epsilon, delta)


def _measure(
    measure: str | Summed,
    max_per_item: Bound | Sequence[Bound] | None,
    max_total: Bound | None,
) -> dict[str, object]:
    if measure == "persons" and max_per_item is None and max_total is None:
        return {}
    if measure != "rows" and isinstance(measure, str):
        raise InvalidParameter(
            f"measure={measure!r} must be 'persons' without bounds, 'rows' or Sum('column')"
        )
    asked: dict[str, object] = {"of": "rows"}
    if not isinstance(measure, str):
        asked = {"of": "sum", "column": measure.column, "unit": _decimal(measure.unit)}
    if max_per_item is not None:
        several = isinstance(max_per_item, Sequence) and not isinstance(max_per_item, str)
        listed = max_per_item if several else [max_per_item]
        asked["max_per_item"] = [_decimal(one) for one in listed]  # type: ignore[union-attr]
    elif max_total is not None:
        asked["max_per_item"] = [_decimal(max_total)]
    if max_total is not None:
        asked["max_total"] = _decimal(max_total)
    return {"measure": asked}


def _decimal(number: object) -> str:
    """As the service reads it: without an exponent."""
    from decimal import Decimal, InvalidOperation

    try:
        return f"{Decimal(str(number)):f}"
    except InvalidOperation:
        return str(number)  # "private", or what the service refuses


def _answer(job: Mapping[str, Any]) -> Answer:
    found = job["answer"]

    def numbers(name: str) -> tuple[int, ...] | None:
        return None if found[name] is None else tuple(found[name])

    return Answer(
        str(job["id"]),
        tuple(found["items"]),
        found["ordered"],
        found["complete"],
        found["epsilon"],
        found["delta"],
        numbers("counts"),
        found["half_width"],
        numbers("at_least"),
        dict(found["receipt"]),
    )


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
        raise InvalidParameter(f"there is no data set {dataset!r}; datasets() lists yours")
    return dataset


def _saved(name: str) -> str:
    """A saved question's name, which is a part of an address."""
    if not name or not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
        raise InvalidParameter(
            f"{name!r} must be a name of small letters, digits, dots, dashes and underscores"
        )
    return name


__all__ = ["Answer", "Budget", "Preview", "SavedQuestion", "Service", "connect"]
