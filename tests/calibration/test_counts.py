"""Counts beside a selection keep to the budget, whatever is released."""

import pytest

from topsecret import Histogram
from topsecret.calibration import Question
from topsecret.calibration.counts import with_counts
from topsecret.errors import InvalidParameter
from topsecret.noise.lattice import DiscreteGaussian

QUESTIONS = [
    ("limited-domain", Question.of(k=1, epsilon=1)),
    ("limited-domain", Question.of(k=10, epsilon=0.5, max_items=3)),
    ("gumbel", Question.of(k=20, epsilon=2, domain_size=1000)),
    ("stable", Question.of(k="auto", epsilon=1)),
]


@pytest.mark.parametrize(("name", "question"), QUESTIONS, ids=[name for name, _ in QUESTIONS])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_both_together_keep_to_the_budget(name: str, question: Question, share: float) -> None:
    selection, counts = with_counts(name, question, share)
    spent = (selection.mechanism.loss + counts.loss).epsilon(question.delta)
    assert 0.9 * question.epsilon < spent <= question.epsilon
    assert selection.mechanism.loss.epsilon(question.delta) <= question.epsilon * (1 - share)


@pytest.mark.parametrize("released", [1, 2, 3, 10])
def test_the_noise_does_not_depend_on_how_many_are_released(released: int) -> None:
    """It was paid for beforehand: fewer items must not get less noise."""
    _, counts = with_counts("limited-domain", Question.of(k=10, epsilon=1, max_items=3), 0.25)
    assert counts.moved == 3
    assert counts._noise(released).noise(released) == DiscreteGaussian(counts.variance)


def test_the_interval_covers() -> None:
    """95% of 2,000 counts; a correct sampler fails this with probability below 1e-6."""
    _, counts = with_counts("gumbel", Question.of(k=5, epsilon=1, domain_size=9), 0.25)
    items = tuple("abcde")
    histogram = Histogram.of(dict.fromkeys(items, 500))
    drawn = [n for _ in range(400) for n in counts.release(histogram, items)]
    inside = sum(abs(n - 500) <= counts.half_width for n in drawn)
    assert inside >= 0.95 * 2000 - 5 * (2000 * 0.95 * 0.05) ** 0.5
    narrower = sum(abs(n - 500) <= counts.half_width // 2 for n in drawn)
    assert narrower < 0.85 * 2000


@pytest.mark.parametrize("share", [0, 1, -0.5, True, "half"])
def test_the_share_is_a_share(share: float) -> None:
    with pytest.raises(InvalidParameter, match=r"counts_share=.* must be above 0 and below 1"):
        with_counts("gumbel", Question.of(k=5, epsilon=1, domain_size=9), share)
