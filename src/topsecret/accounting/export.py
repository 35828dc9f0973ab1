"""Losses as events of Google's ``dp_accounting`` (the optional extra ``accounting``)."""

from __future__ import annotations

import importlib
from typing import Any

from topsecret.accounting.classical import pure_rho
from topsecret.accounting.loss import Loss
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, down, precision, up

DpEvent = Any  # the type of an optional package


def to_dp_event(loss: Loss) -> DpEvent:
    """The loss as one composed ``DpEvent``, each parameter rounded so that it promises no more.

    ========================  ====================================================
    part                      event
    ========================  ====================================================
    Gaussian                  ``GaussianDpEvent``, for add-remove accountants
    zCDP, discrete Gaussian   ``ZCDpEvent``
    picks                     ``ZCDpEvent`` of epsilon² / 8: valid, and weaker
    pure steps, nothing else  ``RandomizedResponseDpEvent``, for replace-one accountants
    pure steps among others   ``ZCDpEvent`` of epsilon tanh(epsilon / 2)
    ========================  ====================================================

    The two relations cannot be mixed: version 0.6 accepts randomized response only under
    replace-one, where its PLD accountant doubles the sensitivity of a Gaussian. Randomized
    responses are listed one by one because that accountant drops the count of repeated ones.
    Failures, slack and Rényi curves have no event: account them beside the result.

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
    only_pure = loss == Loss(pure_runs=loss.pure_runs)
    with precision(96):
        for n, epsilon in loss.pick_runs:
            events.append(dp_event.ZCDpEvent(rho=up(n * epsilon * epsilon / 8)))
        for n, epsilon in loss.pure_runs:
            if only_pure:
                # Two buckets keep the truth with odds e^epsilon when noise is 2 / (1 + e^epsilon).
                noise = down(2 / (1 + ball(epsilon).exp()))
                events += [dp_event.RandomizedResponseDpEvent(noise, 2) for _ in range(n)]
            else:
                events.append(dp_event.ZCDpEvent(rho=up(n * pure_rho(epsilon))))
        if loss.mu_squared:
            multiplier = down(1 / ball(loss.mu_squared).sqrt())
            events.append(dp_event.GaussianDpEvent(noise_multiplier=multiplier))
        for n, variance in loss.discrete_runs:
            events.append(dp_event.ZCDpEvent(rho=up(n / (2 * variance))))
        if loss.zcdp_rho:
            events.append(dp_event.ZCDpEvent(rho=up(loss.zcdp_rho)))
    return dp_event.ComposedDpEvent(events)
