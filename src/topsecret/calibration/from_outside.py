"""Mechanisms from outside: an object that the caller passes, or a name that a package registered.

A package registers a mechanism under the entry point group ``topsecret.mechanisms``: the name that
users type, and a ``calibration.Entry`` that builds it and says when it applies.

>>> from topsecret.calibration.question import Question
>>> from topsecret.mechanisms import LimitedDomain
>>> mine = LimitedDomain(k=5, k_bar=100, epsilon_per_pick=0.1, delta=1e-7)
>>> of_object(mine, Question.of(k=5, epsilon=1)).name
'LimitedDomain'
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

from topsecret.calibration.prepared import Prepared, list_ended, set_ended
from topsecret.calibration.question import Question
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.results.export import Public

GROUP = "topsecret.mechanisms"


def check_object(mechanism: Any) -> None:
    """The object is a mechanism, and can be told from others."""
    name = type(mechanism).__name__
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(
            f"mechanism must be a name, or an object that satisfies Mechanism; found a {name}"
        )
    frozen = is_dataclass(mechanism) and mechanism.__dataclass_params__.frozen
    if not frozen:
        raise InvalidParameter(
            f"mechanism={name} must be a frozen dataclass: its fields are its public parameters"
        )


def fingerprint(mechanism: Mechanism) -> dict[str, object]:
    """The class and its public parameters, but for defaults: a field that is added has one."""
    kind, shown = type(mechanism), _fields(mechanism)
    usual = {one.name for one in fields(mechanism) if getattr(mechanism, one.name) == one.default}  # type: ignore[arg-type]
    given = {name: value for name, value in shown.items() if name not in usual}
    return {"class": f"{kind.__module__}.{kind.__qualname__}", "parameters": given}


def of_object(mechanism: Mechanism, question: Question) -> Prepared:
    """The caller's mechanism as it is; what it costs is compared with the budget elsewhere."""
    for name in ("k", "k_bar"):
        own, asked = getattr(mechanism, name, None), getattr(question, name)
        if own is not None and own != asked:
            raise InvalidParameter(
                f"{name}={asked} must be the mechanism's own {name}={own}; pass {name}={own}"
            )
    _check_neighbours(mechanism, question)
    if question.least and not getattr(mechanism, "smallest", False):
        raise InvalidParameter("the mechanism names the most; build it with smallest=True")
    if question.ordered and not mechanism.ordered:
        raise InvalidParameter("the mechanism answers a set; leave ordered out")
    if question.fill and not getattr(mechanism, "fill", False):
        raise InvalidParameter("the mechanism completes nothing at random; leave fill out")
    # On made-up counts: a mechanism that needs a domain, say, is refused before a row is read.
    domain = None if question.domain_size is None else range(question.domain_size)
    nobody = Histogram.leading([], limit=question.k_bar + 1)
    mechanism.select(nobody if domain is None else Histogram.of({}, domain))
    ordered = "in order" if mechanism.ordered else "without order, as a set"
    name = type(mechanism).__name__
    return Prepared(
        name,
        question,
        mechanism,
        _fields(mechanism),
        math.nan,  # its own business
        f"the mechanism {name}, which the caller brought, names it",
        f"up to {question.k} items {ordered}",
        "stands for the items that the mechanism did not name",
        list_ended if mechanism.ordered else set_ended,
    )


def _check_neighbours(mechanism: Any, question: Question) -> None:
    """The mechanism's claim is about the neighbours of this question.

    A mechanism says by ``adjacency``, ``max_items`` and ``sensitivity`` for which changes of the
    counts its loss is proven (``topsecret verify`` tries exactly those). Here one person more or
    less moves each count by at most one (rows and sums by their bound), as many counts as the cap
    that the source applies. Whatever else it rests on it says as ``precondition``, and is refused.
    """
    if said := getattr(mechanism, "precondition", ""):
        raise InvalidParameter(
            f"the loss of {type(mechanism).__name__} holds only where {said}; leave mechanism out "
            "and ask with max_total=… or rise_from=…, which see to it"
        )
    adjacency = getattr(mechanism, "adjacency", "add-remove")
    if adjacency != "add-remove":
        raise InvalidParameter(
            f"the mechanism's loss is for adjacency={adjacency!r}; build it with 'add-remove'"
        )
    cap = getattr(mechanism, "max_items", None)
    if cap is not None and (question.max_items is None or question.max_items > cap):
        raise InvalidParameter(
            f"the mechanism's loss is for people of at most {cap} items; pass max_items={cap}"
        )
    unit = question.sensitivity
    if getattr(mechanism, "sensitivity", 1) < unit:
        raise InvalidParameter(
            f"the mechanism's loss is for counts that a person moves by less than {unit}; "
            f"build it with sensitivity={unit}"
        )


def _fields(mechanism: Any) -> dict[str, Public]:
    shown = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}
    kept = (int, float, str, type(None))
    return {name: value if isinstance(value, kept) else str(value) for name, value in shown.items()}
