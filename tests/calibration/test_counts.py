"""Counts behind a selection keep to the budget, spend it, and get narrower than before."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest

from topsecret.accounting import absorbed, calibrate_gaussian, gaussian_profile
from topsecret.calibration import Question, prepare
from topsecret.calibration.calibrated import calibrated
from topsecret.calibration.counts import CountsBudget, default_share, with_counts
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import LimitedDomain, TestedTopK

PUBLIC = {"domain_size": 5000}
QUESTIONS = [
    ("limited-domain", Question.of(k=1, epsilon=1)),
    ("limited-domain", Question.of(k=10, epsilon=0.5, max_items=3)),
    ("limited-domain", Question.of(k=30, epsilon=0.5)),
    ("gumbel", Question.of(k=20, epsilon=2, **PUBLIC)),
    ("gumbel", Question.of(k=400, epsilon=1, **PUBLIC)),
    ("pruned", Question.of(k=12, epsilon=1, **PUBLIC)),
    ("stable", Question.of(k="auto", epsilon=1)),
    ("fixed-threshold", Question.of(k=3, epsilon=1)),
    ("tested", Question.of(k=100, epsilon=1)),
]
NAMES = [f"{name} {question.k}" for name, question in QUESTIONS]


@pytest.mark.parametrize(("name", "question"), QUESTIONS, ids=NAMES)
def test_both_together_spend_the_budget_and_not_more(name: str, question: Question) -> None:
    _, counts = with_counts(name, question)
    spent = counts.total.epsilon(question.delta)
    assert 0.998 * question.epsilon < spent <= question.epsilon


def test_a_mechanism_that_cannot_answer_says_so_with_counts_too() -> None:
    with pytest.raises(InvalidParameter, match=r"epsilon=20\.0 must lie between 0.0001 and 10"):
        with_counts("tested", Question.of(k=5, epsilon=20))


@pytest.mark.parametrize("part", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("of_epsilon", [False, True])
def test_other_parts_keep_to_the_budget(part: float, of_epsilon: bool) -> None:
    question = Question.of(k=4, epsilon=0.7, delta=1e-7, **PUBLIC)
    _, counts = with_counts("gumbel", question, CountsBudget(part, of_epsilon))
    assert 0.99 * question.epsilon < counts.total.epsilon(question.delta) <= question.epsilon


def test_the_part_is_one_of_mu_squared() -> None:
    question = Question.of(k=50, epsilon=1, **PUBLIC)
    _, counts = with_counts("gumbel", question, CountsBudget(0.3))
    assert counts.mu**2 == pytest.approx(0.3 * calibrate_gaussian(1, 1e-6), rel=1e-6)
    assert default_share(question) == 0.15
    assert default_share(Question.of(k=9, epsilon=1)) == 0.2
    assert default_share(Question.of(k="auto", epsilon=1)) == 0.15


@pytest.mark.parametrize(("k", "at_most"), [(5, 22), (10, 28), (50, 54), (100, 73)])
def test_half_widths_with_the_list_of_before(k: int, at_most: int) -> None:
    """The list as good as with independent noise, whose half-widths were 33, 46, 102 and 144."""
    question = Question.of(k=k, epsilon=1, **PUBLIC)
    selection, counts = with_counts("gumbel", question, CountsBudget(0.25, of_epsilon=True))
    before = prepare("gumbel", Question.of(k=k, epsilon=0.75, delta=0.75e-6, **PUBLIC))
    assert selection.mechanism == before.mechanism
    assert counts.intervals(k).half_width() <= at_most * 1.03


def test_half_widths_of_a_length_that_the_counts_choose() -> None:
    """Four items: ± 142 with independent noise for as many as there might have been."""
    question = Question.of(k="auto", epsilon=1)
    _, counts = with_counts("stable", question, CountsBudget(0.25, of_epsilon=True))
    assert counts.intervals(4).half_width() <= 20


def test_a_cap_lowers_the_noise() -> None:
    def width(cap: int | None) -> int:
        question = Question.of(k=20, epsilon=1, max_items=cap, **PUBLIC)
        return with_counts("gumbel", question)[1].intervals(20).half_width()

    assert width(1) < width(5) < width(None) == width(20)


def test_an_early_end_hands_on_what_it_did_not_take() -> None:
    question = Question.of(k=50, epsilon=1)
    selection, counts = with_counts("limited-domain", question)
    mechanism = selection.mechanism
    assert isinstance(mechanism, LimitedDomain)
    early, whole = counts.intervals(4, symbols=5), counts.intervals(4, symbols=50)
    assert early.sigma < 0.45 * whole.sigma
    # The price is that of the closed form, in which every end has the same total.
    price = Fraction(mechanism.epsilon_per_pick)
    for symbols in (1, 5, 50):
        spent = absorbed(((symbols, price),), counts.after[symbols] ** 2)
        assert spent is not None
        assert float(spent) == pytest.approx(float(counts.total.mu_squared), rel=1e-12)
    assert counts.total.pick_runs == ()


def test_a_sharpened_price_hands_nothing_on() -> None:
    _, counts = with_counts("limited-domain", Question.of(k=5, epsilon=1))
    assert counts.after == ()
    assert counts.intervals(2, symbols=3) == counts.intervals(2, symbols=5)


@pytest.mark.parametrize("k", [20, 100, 260])
def test_a_finer_recursion_confirms_what_is_spent(k: int) -> None:
    """At least 99.8% of epsilon, sharpened (20, 100) or by the closed form alone (260)."""
    selection, counts = with_counts("gumbel", Question.of(k=k, epsilon=1, **PUBLIC))
    price = Fraction(selection.parameters["epsilon_per_pick"])  # type: ignore[arg-type]
    profile = gaussian_profile(counts.mu, price / 32, 2).after_picks([price] * k)
    assert 0.998 < profile.epsilon(1e-6) <= 1.0


@pytest.mark.parametrize("epsilon", [0.4, 2])
@pytest.mark.parametrize("k", [1, 2, 5, 8, 15])
def test_short_tested_lists_spend_their_budget(k: int, epsilon: float) -> None:
    """At least 99.8% of epsilon, with counts and without, whatever the length may be."""
    for loss in (
        TestedTopK(k, epsilon, 1e-6).loss,
        TestedTopK(k, epsilon, 1e-6, lengths="fixed").loss,
        with_counts("tested", Question.of(k=k, epsilon=epsilon))[1].total,
    ):
        assert 0.998 * epsilon <= loss.epsilon(1e-6) <= epsilon


@pytest.mark.parametrize("k", [20, 100])
def test_a_list_that_may_end_early_spends_its_budget(k: int) -> None:
    """By the recursion over all ends, F_j = max(G_{μ_j}, T F_{j+1}) and T F_1 at the end.

    The lemma makes F_j = G_{μ_j}, so one recursive step says what is spent. (A whole list alone
    costs 97.5% of epsilon at k = 20 and 99.6% at 100: the rest is what early ends give on.)
    """
    selection, counts = with_counts("limited-domain", Question.of(k=k, epsilon=1))
    own = selection.mechanism.loss
    price = Fraction(selection.mechanism.epsilon_per_pick)  # type: ignore[attr-defined]
    for later, sooner in pairwise(reversed(counts.after)):
        assert absorbed(((1, price),), later**2) == pytest.approx(sooner**2, rel=1e-12)
    profile = gaussian_profile(counts.after[1], price / 32, 2).after_picks([price])
    spent = profile.epsilon(Fraction(1, 10**6) - own.failures) + float(own.slack)
    assert 0.998 < spent <= counts.total.epsilon(1e-6) <= 1.0


def test_the_interval_covers() -> None:
    """95% of 1,000 counts, in 200 lists: fails by chance with probability below 1e-5."""
    _, counts = with_counts("gumbel", Question.of(k=5, epsilon=1, domain_size=9))
    items = tuple("abcde")
    histogram = Histogram.of(dict.fromkeys(items, 500))
    released = [counts.release(histogram, items, 5) for _ in range(200)]
    width = counts.intervals(5).half_width()
    inside = sum(abs(n - 500) <= width for one in released for n in one.counts)
    assert inside >= 1000 * 0.95 - 5 * math.sqrt(1000 * 0.95 * 0.05 * 3)
    assert sum(abs(n - 500) <= width // 2 for one in released for n in one.counts) < 850


@pytest.mark.parametrize("share", [0, 1, -0.5, True, "half"])
def test_the_part_is_a_part(share: float) -> None:
    question = Question.of(k=5, epsilon=1, domain_size=9)
    with pytest.raises(InvalidParameter, match=r"counts_part=.* must be above 0 and below 1"):
        with_counts("gumbel", question, CountsBudget(share))
    with pytest.raises(InvalidParameter, match=r"counts_share=.* must be above 0 and below 1"):
        with_counts("gumbel", question, CountsBudget(share, of_epsilon=True))


def test_a_calibrated_list_charges_for_its_counts() -> None:
    question = Question.of(k=5, epsilon=1, **PUBLIC)
    each = calibrated("gumbel", question, CountsBudget())
    assert each.loss == with_counts("gumbel", question)[1].total
    assert each.loss != each.selection.mechanism.loss
    assert each.parameters["counts_part"] == 0.2
    drawn = each.draw(Histogram.of(dict.fromkeys("abcdefg", 900), domain=range(5000)))
    assert drawn.counts is not None
    assert drawn.intervals is not None
    assert drawn.intervals.released == 5


def test_no_items_no_intervals() -> None:
    each = calibrated("limited-domain", Question.of(k=5, epsilon=1), CountsBudget())
    drawn = each.draw(Histogram.of({}))
    assert (drawn.items, drawn.counts, drawn.intervals) == ((), (), None)
