"""Losses as events of Google's ``dp_accounting`` (the optional extra ``accounting``)."""

from __future__ import annotations

import importlib
from typing import Any

from topsecret.accounting.loss import Loss
from topsecret.errors import InvalidParameter
from topsecret.rounding import ball, down, precision, up

DpEvent = Any  # the type of an optional package


def to_dp_event(loss: Loss) -> DpEvent:
    """The loss as one composed ``DpEvent``, each parameter rounded so that it promises no more.

    A pick has no event of its own in released versions: it is exported as the zCDP event of
    epsilon² / 8, which is valid and weaker than the loss. Failures, slack and Rényi curves have
    no event: take them out first and account them beside the result.

    >>> to_dp_event(Loss())
    ComposedDpEvent(events=[])
    """
    dp_event: Any = importlib.import_module("dp_accounting.dp_event")
    missing = {
        "failures": loss.failures,
        "slack": loss.slack,
        "Rényi curves": loss.curves,
    }
    for name, part in missing.items():
        if part:
            raise InvalidParameter(
                f"a loss with {name} has no DpEvent; export the loss without them"
                " and account them beside it"
            )
    events: list[Any] = []
    with precision(96):
        for n, epsilon in loss.pick_runs:
            # zCDP events compose by adding rho, so a run is one event.
            events.append(dp_event.ZCDpEvent(rho=up(n * epsilon * epsilon / 8)))
        for n, epsilon in loss.pure_runs:
            # Randomized response that keeps the truth with probability e^eps / (1 + e^eps).
            noise = down(2 / (1 + ball(epsilon).exp()))
            response = dp_event.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)
            events.append(dp_event.SelfComposedDpEvent(response, n))
        if loss.mu_squared:
            multiplier = down(1 / ball(loss.mu_squared).sqrt())
            events.append(dp_event.GaussianDpEvent(noise_multiplier=multiplier))
        if loss.zcdp_rho:
            events.append(dp_event.ZCDpEvent(rho=up(loss.zcdp_rho)))
    return dp_event.ComposedDpEvent(events)
