"""Mechanisms that name any item of a public domain: no threshold, never NOTHING."""

from __future__ import annotations

import math

from topsecret.accounting import calibrate, calibrate_picks, pure
from topsecret.calibration.prepared import (
    Prepared,
    list_ended,
    list_of_private_length,
    set_of_private_size,
)
from topsecret.calibration.question import Question
from topsecret.calibration.words import about, amount, too_small, unit_of
from topsecret.exact.rounding import exact, up
from topsecret.mechanisms import (
    CanonicalSet,
    GumbelTopK,
    Mechanism,
    OneshotExponential,
    OneshotLaplace,
    OneshotPrivateLength,
    PermuteAndFlip,
    PrunedTopK,
)
from topsecret.results.export import Public

_NEVER = "cannot occur: every item of the public domain may be named"


def gumbel(question: Question) -> Prepared:
    """`GumbelTopK`, k picks."""
    k = question.length
    price = calibrate_picks(k, question.epsilon, question.delta)
    if price <= 0:
        raise too_small(question)
    return gumbel_at(question, price)


def gumbel_at(question: Question, price: float) -> Prepared:
    """`GumbelTopK` at a price per pick that others fixed."""
    unit = question.sensitivity
    mechanism = GumbelTopK(question.length, unit / exact(price), question.least, unit)
    return _prepared("gumbel", question, mechanism, {"epsilon_per_pick": price}, 1 / price)


def pruned(question: Question) -> Prepared:
    """`PrunedTopK`: its last picks and prunes at the price found."""
    k = question.length
    price = calibrate(
        lambda each: PrunedTopK(k, each).loss,
        question.epsilon,
        question.delta,
        calibrate_picks(k, question.epsilon, question.delta) or question.epsilon / k,
    )
    if price <= 0:
        raise too_small(question)
    return pruned_at(question, price)


def pruned_at(question: Question, price: float) -> Prepared:
    """`PrunedTopK` at a price of its last picks that others fixed."""
    parameters: dict[str, Public] = {"epsilon_per_pick": price}
    mechanism = PrunedTopK(question.length, price, question.sensitivity)
    return _prepared("pruned", question, mechanism, parameters, 1 / price)


def permute_and_flip(question: Question) -> Prepared:
    """`PermuteAndFlip`, k pure rounds."""
    k = question.length
    price = calibrate(
        lambda each: k * pure(each), question.epsilon, question.delta, question.epsilon / k
    )
    if price <= 0:
        raise too_small(question)
    unit = question.sensitivity
    scale = unit / exact(price)
    least = question.least
    mechanism = PermuteAndFlip(k, scale, unit, smallest=least)  # type: ignore[arg-type]  # exact
    return _prepared(
        "permute-and-flip", question, mechanism, {"epsilon_per_pick": price}, 1 / price
    )


def oneshot_exponential(question: Question) -> Prepared:
    """`OneshotExponential`, pure."""
    unit = question.sensitivity
    mechanism = OneshotExponential(question.length, question.epsilon, unit, smallest=question.least)
    scale = up(mechanism.scale / unit)
    return _prepared("oneshot-exponential", question, mechanism, {"scale": scale}, scale)


def oneshot_laplace(question: Question) -> Prepared:
    """`OneshotLaplace`, with delta where its theorem holds, else pure."""
    assert question.domain_size is not None
    covered = question.epsilon <= 0.2 and 0 < question.delta <= 0.05 and question.domain_size >= 2
    mechanism = OneshotLaplace(
        question.length, question.epsilon, question.delta if covered else None
    )
    scale = up(mechanism.scale(question.domain_size))
    return _prepared("oneshot-laplace", question, mechanism, {"scale": scale}, scale)


def canonical_set(question: Question) -> Prepared:
    """`CanonicalSet`, pure: what a delta would add to one draw is not worth a search."""
    k, fill = question.length, question.fill
    mechanism = CanonicalSet(k, question.epsilon, fill=fill)
    scale = up(1 / mechanism.exponents[1])
    filling: dict[str, Public] = {"fill": True} if fill else {}
    rest = f", completed at random to {k}" if fill else ""
    return Prepared(
        "canonical-set",
        question,
        mechanism,
        {"domain_size": question.domain_size, "scale": scale, **filling},
        scale,
        "the item is in the set that was drawn at random among all sets of that size of the "
        f"{question.domain_size} items of the public domain. A set is the likelier, the more "
        f"people the one of its items with the fewest has: with {math.ceil(scale):,} people more, "
        "all else equal, it is at least 2.7 times as likely",
        f"a set of up to {k} items, without order, its size chosen privately{rest}",
        _NEVER,
        set_of_private_size,
        k + 1,
    )


def oneshot_private_length(question: Question) -> Prepared:
    """`OneshotPrivateLength`, pure."""
    k = question.length
    mechanism = OneshotPrivateLength(k, question.epsilon)
    scale = up(mechanism.list_scale(k))
    return Prepared(
        "oneshot-private-length",
        question,
        mechanism,
        {"domain_size": question.domain_size, "scale": scale},
        scale,
        f"its noisy count is among the largest of the {question.domain_size} items of the public "
        f"domain, as many as a private step chose; the noise of a list of {k} has a scale of "
        f"{about(scale)} people, that of a shorter list less",
        f"a list of up to {k} items in order, its length chosen privately",
        _NEVER,
        list_of_private_length,
        k + 1,
    )


def _prepared(
    name: str,
    question: Question,
    mechanism: Mechanism,
    parameters: dict[str, Public],
    scale: float,
) -> Prepared:
    which = "smallest" if question.least else "largest"
    scored = "score" if question.scores else "count"
    k, order = question.length, "in order" if mechanism.ordered else "without order, as a set"
    return Prepared(
        name,
        question,
        mechanism,
        {"domain_size": question.domain_size, **parameters, **unit_of(question)},
        scale,
        f"its noisy {scored} is among the {k} {which} of the {question.domain_size} items of the "
        f"public domain; the noise has a scale of {amount(question, scale)}",
        f"{k} items {order}",
        _NEVER,
        list_ended,
        k + 1,
    )
