"""The running epsilon is a valid bound, close to the Rényi one, and most_steps never overspends."""

import math

import pytest

from topsecret.accounting import NO_LOSS, Loss, failure, gaussian, picks, pure, slack
from topsecret.accounting.running import RunningEpsilon, most_steps
from topsecret.errors import InvalidParameter

STEPS = {
    "stable": picks(1, 0.04) + gaussian(0.001) + failure(1e-10),
    "gaussian": gaussian(0.01),
    "pure with slack": pure(0.1) + slack(1e-6),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("n", [1, 7, 100])
def test_it_lies_between_the_accountant_and_a_percent_above_its_renyi_bound(
    step: Loss, n: int
) -> None:
    bounds = {bound.name: bound.epsilon for bound in (n * step).explain(1e-6).bounds}
    running = RunningEpsilon(step, 1e-6).after(n)
    assert min(bounds.values()) <= running
    assert running <= 1.01 * min(bounds["Rényi"], bounds.get("basic", math.inf))


def test_failures_beyond_delta_are_infinite() -> None:
    running = RunningEpsilon(gaussian(0.01) + failure(1e-7), 1e-6)
    assert running.after(9) < math.inf
    assert running.after(11) == math.inf


def test_nothing_costs_nothing() -> None:
    assert RunningEpsilon(NO_LOSS, 1e-6).after(10**6) == 0.0
    assert RunningEpsilon(gaussian(1), 1e-6).after(0) == 0.0


def test_delta_must_be_a_probability() -> None:
    with pytest.raises(InvalidParameter, match="delta=1 must be at least 0 and below 1"):
        RunningEpsilon(gaussian(1), 1)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_most_steps_fit_and_few_more_do_not(step: Loss) -> None:
    n = most_steps(step, 1.0, 1e-6)
    assert (n * step).epsilon(1e-6) <= 1
    assert (math.ceil(1.003 * n + 2) * step).epsilon(1e-6) > 1


def test_no_step_fits_into_too_small_a_budget() -> None:
    assert most_steps(pure(2), 1, 1e-6) == 0
