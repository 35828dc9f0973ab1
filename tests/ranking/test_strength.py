"""Strengths: the law of the noisy totals, the fit, its error bars, and what the receipt says."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pages import PAGES
from topsecret.accounting import gaussian
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import precision, up
from topsecret.noise.bits import ReplayableBits
from topsecret.noise.lattice import DiscreteLaplace, IntegerNoise
from topsecret.noise.rounded_gaussian import RoundedGaussian
from topsecret.ranking import Comparisons, StrengthRanking, bradley_terry, strength
from topsecret.ranking.bradley_terry import BradleyTerry, Covariance, centred
from topsecret.ranking.win_totals import NoisyTotals

SCHEDULES = [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (0, 1)], [(0, 1), (0, 2)]]
EPSILONS = (0.0, 0.3, 1.0, 2.0)


def moves(cap: int) -> set[tuple[int, ...]]:
    """All that ``cap`` comparisons of one person can change in the totals of three items."""
    found = set()
    for schedule in SCHEDULES:
        if len(schedule) > cap:
            continue
        totals = []
        for outcomes in product((0, 1, 2), repeat=len(schedule)):
            won = [a if o != 2 else b for (a, b), o in zip(schedule, outcomes, strict=True)]
            lost = [b if o != 2 else a for (a, b), o in zip(schedule, outcomes, strict=True)]
            games = Comparisons.from_codes(
                won, lost, items="abc", ties=[o == 1 for o in outcomes], schedule="public"
            )
            totals.append(games.half_wins())
        found |= {tuple((a - b).tolist()) for a in totals for b in totals}
    return found


def divergence(noise: IntegerNoise, moved: tuple[int, ...], epsilon: float, reach: int) -> float:
    """sup_S P(S) − e^ε·P′(S) over the joint law of all totals, cut to a window: a lower bound."""
    with precision(80):
        masses = np.array([float(noise.mass(x)) for x in range(-reach, reach + 1)])
    first = second = np.ones(1)
    for shift in moved:
        if shift == 0:
            continue
        shifted = np.zeros_like(masses)
        at = np.arange(len(masses)) - shift
        inside = (at >= 0) & (at < len(masses))
        shifted[inside] = masses[at[inside]]
        first = np.multiply.outer(first, masses).ravel()
        second = np.multiply.outer(second, shifted).ravel()
    # Outside of the window of the other law its mass is unknown here: left out on both sides.
    kept = second > 0
    return float(np.maximum(first[kept] - math.exp(epsilon) * second[kept], 0).sum())


def worst(noise: IntegerNoise, cap: int, epsilon: float, reach: int = 30) -> float:
    return max(divergence(noise, moved, epsilon, reach) for moved in moves(cap))


@pytest.mark.parametrize("cap", [1, 2])
def test_the_totals_are_pure_dp_on_all_neighbours(cap: int) -> None:
    for epsilon in (0.7, 2.0):
        totals = NoisyTotals(epsilon, comparisons_per_person=cap)
        assert worst(totals.noise, cap, epsilon) <= 1e-12
        # Tight: a little less epsilon is exceeded.
        assert worst(totals.noise, cap, epsilon - 0.05) > 1e-3


def test_wrong_noises_are_rejected() -> None:
    epsilon = 2.0
    in_wins = DiscreteLaplace(Fraction(2) / Fraction(epsilon))  # forgets that units are half wins
    assert worst(in_wins, 1, epsilon) > 0.05
    cap_not_enforced = NoisyTotals(epsilon, comparisons_per_person=1).noise
    assert worst(cap_not_enforced, 2, epsilon) > 0.05


@pytest.mark.parametrize("cap", [1, 2])
def test_gaussian_totals_keep_to_their_profile(cap: int) -> None:
    totals = NoisyTotals(2.0, 1e-2, cap)
    assert isinstance(totals.noise, RoundedGaussian)
    assert totals.loss.epsilon(Fraction(1e-2)) <= 2.0
    for epsilon in EPSILONS:
        mu = cap * math.sqrt(8) / float(totals.noise.sigma)
        claim = _phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * _phi(-mu / 2 - epsilon / mu)
        found = worst(totals.noise, cap, epsilon, reach=24)
        assert found <= claim * (1 + 1e-9)
        # The L2 bound is met up to rounding; without the ½ of a half win it is broken.
        half = RoundedGaussian(totals.noise.sigma / 2)
        assert worst(half, cap, epsilon, reach=24) > claim * 1.2


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def test_the_gaussian_charge_is_that_of_its_sigma() -> None:
    totals = NoisyTotals(1.0, 1e-6, 3)
    assert isinstance(totals.noise, RoundedGaussian)
    assert totals.loss == gaussian(Fraction(72) / totals.noise.sigma**2)
    assert 0.999 < totals.loss.epsilon(Fraction(1e-6)) <= 1.0


def test_the_variance_is_that_of_the_noise() -> None:
    for totals in (NoisyTotals(0.5), NoisyTotals(20.0), NoisyTotals(1.0, 1e-3)):
        with precision(80):
            masses = [float(totals.noise.mass(x)) for x in range(400)]
        in_halves = sum(2 * x * x * mass for x, mass in enumerate(masses))
        assert totals.variance == pytest.approx(in_halves / 4, rel=1e-6)


def league(seed: int, items: int, rows: int, spread: float = 1.0) -> tuple[np.ndarray, Comparisons]:
    """Strengths, and games of items that play unequally often."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, spread, items)
    often = np.exp(rng.normal(0, 0.7, items))
    one, other = rng.choice(items, (2, rows), p=often / often.sum())
    won = rng.random(rows) < 1 / (1 + np.exp(truth[other] - truth[one]))
    winners, losers = np.where(won, one, other), np.where(won, other, one)
    return truth, Comparisons.from_codes(winners, losers, items=range(items), schedule="public")


def covered(seed: int, epsilon: float, tail: float = 1.17, counted: float = 1.0) -> float:
    """The share of true strengths within their 95% bars; ``counted`` of the variance is known."""
    truth, games = league(seed, 60, 3000, spread=0.5 + 0.25 * (seed % 5))
    totals = NoisyTotals(epsilon)
    released = totals.release(games.half_wins(), ReplayableBits(f"{seed} {epsilon}".encode()))
    model = BradleyTerry(games.games, totals.variance * counted, tail)
    fit = model.fit(released / 2)
    assert fit.residual <= bradley_terry.TOLERANCE
    errors = np.abs(fit.strengths - centred(truth, model.parts))
    return float((errors <= 1.96 * fit.standard_errors).mean())


def test_bars_cover_on_made_leagues_and_without_the_noise_they_do_not() -> None:
    """Twenty leagues of 60 items: the share has a standard error of about .007."""
    leagues = [(seed, (0.5, 2.0)[seed % 2]) for seed in range(20)]
    assert 0.93 <= np.mean([covered(*each) for each in leagues]) <= 0.97
    assert "on made-up leagues 93 to 97% of the 95% bars contain" in PAGES["docs/ranking.md"]
    assert np.mean([covered(*each, tail=1.0, counted=1e-6) for each in leagues]) < 0.9


def test_the_fit_solves_its_equations() -> None:
    _, games = league(3, 30, 900)
    wins = games.half_wins() / 2
    model = BradleyTerry(games.games, 8.0)
    fit = model.fit(wins)
    theta = fit.strengths
    met, factor = games.games.toarray(), np.ones((30, 30))
    pairs = list(zip(model._first.tolist(), model._second.tolist(), strict=True))
    for (a, b), kappa in zip(pairs, model._factors(fit.spread), strict=True):
        factor[a, b] = factor[b, a] = kappa
    # The shift to mean 0 is undone by solving for it: the ridge alone feels it.
    chance = 1 / (1 + np.exp(-factor * (theta[:, None] - theta[None, :])))
    gradient = wins - (met * chance).sum(axis=1)
    shift = (gradient / model.ridge(fit.spread) - theta).mean()
    assert np.abs(gradient - model.ridge(fit.spread) * (theta + shift)).max() < 1e-5


def test_probed_error_bars_agree_with_the_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    _, games = league(4, 400, 4000)
    model = BradleyTerry(games.games, 8.0)
    fit = model.fit(games.half_wins() / 2)
    dense = np.sqrt(Covariance(model, fit.strengths, fit.spread).variances())
    monkeypatch.setattr(bradley_terry, "DENSE", 0)
    probed = np.sqrt(Covariance(model, fit.strengths, fit.spread).variances())
    assert np.abs(probed / dense - 1).max() < 0.05


def test_the_error_of_a_difference_is_that_of_the_model() -> None:
    _, games = league(5, 12, 700)
    ranking = strength(games, epsilon=2, bits=ReplayableBits(b"d"))
    totals = NoisyTotals(2)
    model = BradleyTerry(games.games, totals.variance)
    fit = model.fit(totals.release(games.half_wins(), ReplayableBits(b"d")) / 2)
    chance = ranking.win_probability(ranking.items[0], ranking.items[4])
    odds = math.log(chance.high / (1 - chance.high)) - math.log(chance.low / (1 - chance.low))
    exact = model.difference(fit, ranking.items[0], ranking.items[4])  # type: ignore[arg-type]
    assert odds / 2 / 1.96 == pytest.approx(exact, rel=0.15)


def test_a_league_is_ranked_whole_or_in_part_at_one_price() -> None:
    truth, games = league(6, 10, 20_000)
    ranking = strength(games, epsilon=1, bits=ReplayableBits(b"r"))
    assert ranking.items == tuple(np.argsort(-truth).tolist())
    assert list(ranking.strengths) == sorted(ranking.strengths, reverse=True)
    assert sum(ranking.strengths) == pytest.approx(0, abs=1e-9)
    assert ranking.epsilon == 1.0
    first = strength(games, epsilon=1, k=3, bits=ReplayableBits(b"r"))
    assert (first.items, first.size) == (ranking.items[:3], 10)
    with_delta = strength(games, epsilon=1, delta=1e-6)
    assert with_delta.epsilon <= 1.0
    assert with_delta.delta == 1e-6


def test_it_comes_back_from_its_record_and_shows_itself() -> None:
    _, games = league(7, 8, 500)
    ranking = strength(games, epsilon=1)
    assert StrengthRanking.from_dict(json.loads(ranking.to_json())) == ranking
    lines = ranking.to_csv().splitlines()
    assert lines[0] == "rank,item,strength,standard_error,low,high,games,part"
    assert len(lines) == 9
    assert "± " in str(ranking)
    assert ranking.plot().axes


def test_the_receipt_says_what_is_protected() -> None:
    _, games = league(8, 5, 100)
    receipt = dict(strength(games, epsilon=1).receipt)
    assert receipt["Protected"].startswith("who won any one comparison.")
    failing = dict(strength(games, epsilon=1, delta=1e-6).receipt)["Protected"]
    assert " and delta times 1 + e^epsilon + … + e^((b-1) epsilon). Name the column" in failing
    capped = Comparisons.from_codes([0], [1], items="ab", per_person=5, schedule="public")
    receipt = dict(strength(capped, epsilon=1, person="voter").receipt)
    assert receipt["Budget"].endswith("open it with --person voter --adjacency outcomes.")
    assert receipt["Protected"] == (
        "how any one person (voter) decided, in all their comparisons, of which 5 were kept at "
        "most. That they took part, and in which comparisons, is public and not protected."
    )
    assert up(Fraction(20)) == float(NoisyTotals(1, None, 5).noise.scale)  # type: ignore[union-attr]


def test_parts_that_never_met_are_not_compared() -> None:
    games = Comparisons.from_rows(["a", "c"], ["b", "d"], schedule="public")
    ranking = strength(games, epsilon=1)
    with pytest.raises(InvalidParameter, match="never met, not even through others"):
        ranking.win_probability("a", "c")
    with pytest.raises(InvalidParameter, match="'z' is not in this ranking"):
        ranking.win_probability("a", "z")
    assert ranking.win_probability("a", "b").low < 0.5 < ranking.win_probability("a", "b").high


def test_no_comparisons_and_hostile_totals_are_ordinary_inputs() -> None:
    empty = Comparisons.from_rows([], [], schedule="public")
    assert strength(empty, epsilon=1).items == ()
    one_sided = Comparisons.from_rows(["a"] * 10**4, ["b"] * 10**4, schedule="public")
    ranking = strength(one_sided, epsilon=0.01)
    assert all(math.isfinite(value) for value in (*ranking.strengths, *ranking.standard_errors))


def test_mistakes_are_named() -> None:
    _, games = league(9, 4, 30)
    with pytest.raises(InvalidParameter, match="k=9 must be at most the number of items=4"):
        strength(games, epsilon=1, k=9)
    with pytest.raises(InvalidParameter, match="epsilon=0 must be above 0"):
        strength(games, epsilon=0)
    with pytest.raises(InvalidParameter, match="comparisons_per_person=0"):
        NoisyTotals(1, None, 0)
