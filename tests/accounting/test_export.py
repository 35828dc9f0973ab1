"""Export to dp_accounting: the event promises no more than the loss."""

import math

import pytest
from dp_accounting import NeighboringRelation, pld, rdp

from topsecret.accounting import NO_LOSS, failure, gaussian, picks, pure, slack, zcdp
from topsecret.accounting.export import to_dp_event
from topsecret.errors import InvalidParameter


def pld_epsilon(loss, relation=NeighboringRelation.ADD_OR_REMOVE_ONE):
    accountant = pld.PLDAccountant(neighboring_relation=relation)
    accountant.compose(to_dp_event(loss))
    return accountant.get_epsilon(1e-6)


def rdp_epsilon(loss, delta=1e-6):
    orders = [1 + 10 ** (i / 100) for i in range(-200, 300)]
    accountant = rdp.RdpAccountant(orders)
    accountant.compose(to_dp_event(loss))
    return accountant.get_epsilon(delta)


def test_a_gaussian_agrees_with_our_optimum():
    loss = gaussian(0.1) + gaussian(0.2)
    assert loss.epsilon(1e-6) == pytest.approx(pld_epsilon(loss), rel=1e-3)


def test_pure_steps_agree_with_our_optimum_and_keep_their_number():
    loss = 5 * pure(0.3) + 3 * pure(0.2)
    theirs = pld_epsilon(loss, NeighboringRelation.REPLACE_ONE)
    assert loss.epsilon(1e-6) == pytest.approx(theirs, rel=2e-3)


def test_picks_and_zcdp_are_exported_by_their_rho():
    loss = picks(50, 0.1) + zcdp(0.05) + gaussian(0.02)
    theirs = rdp_epsilon(loss)
    assert zcdp(loss.rho()).epsilon(1e-6) == pytest.approx(theirs, rel=1e-3)
    assert loss.epsilon(1e-6) <= theirs


def test_pure_steps_among_others_are_exported_by_their_rho():
    loss = 7 * (gaussian(0.1) + pure(0.2))
    assert zcdp(loss.rho()).epsilon(1e-6) == pytest.approx(rdp_epsilon(loss), rel=1e-3)


def test_nothing_is_an_empty_event():
    assert to_dp_event(NO_LOSS).events == []


@pytest.mark.parametrize(("part", "name"), [(failure(1e-9), "failures"), (slack(0.1), "slack")])
def test_what_has_no_event_is_refused(part, name):
    with pytest.raises(InvalidParameter, match=f"a loss with {name} has no DpEvent"):
        to_dp_event(pure(1) + part)


def test_parameters_are_rounded_to_promise_less():
    event = to_dp_event(gaussian(3))
    assert event.events[0].noise_multiplier <= 1 / math.sqrt(3)
