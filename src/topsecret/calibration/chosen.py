"""Two mechanisms and a private choice between them, calibrated together."""

from __future__ import annotations

from topsecret.calibration.prepared import EMPTY_ADVICE, Prepared, list_chosen
from topsecret.calibration.question import Question
from topsecret.calibration.unknown_domain import even_lead, likely_lead
from topsecret.calibration.weighted import weights_of
from topsecret.calibration.words import half_and_likely, lead, scaled_down, unit_of, weighted_rule
from topsecret.counts.clip import Clip
from topsecret.counts.weights import Weights
from topsecret.exact.rounding import up
from topsecret.mechanisms import TestedOrWeighted
from topsecret.mechanisms.tested_or_weighted import TESTED, WEIGHTED, Branches
from topsecret.mechanisms.tested_schedule import default_k_bar


def tested_or_weighted(question: Question) -> Prepared:
    """`TestedOrWeighted`: picks for people who have many items, weights for those with few.

    By rows and sums: picks, or sums of which all that one person adds is bounded together.
    """
    k, scores = question.length, question.scores
    depth = question.k_bar if question.k_bar_given else default_k_bar(k)
    weights: Weights | Clip = weights_of(question)
    if scores is not None:
        weights = Clip.of(scores.sensitivity, question.max_items)
    mechanism = TestedOrWeighted(k, question.epsilon, question.delta, depth, weights)
    branches = mechanism.branches
    schedule = branches.tested.schedule
    longest, shortest = schedule.lengths[0], schedule.lengths[-1]
    noun, nobody = ("people", "0 people") if scores is None else (scores.noun, "0")
    rules = {
        TESTED: "the item is among the largest by noisy counts, and the list, of a length chosen "
        f"with noise, passes a noisy test. Only the {depth} largest items can be named. An item's "
        f"lead is what it has more than the item ranked {depth + 1} ({nobody} where there are "
        f"fewer items). At this epsilon a list of {k} passes half of the time if its last item "
        "leads by "
        f"{lead(question, even_lead(longest))} {noun}, and 98% of the time by "
        f"{lead(question, likely_lead(longest))}. With a smaller "
        "lead a shorter list is likely; so is an empty one, if not even the largest item leads by "
        f"{lead(question, even_lead(shortest))}",
        WEIGHTED: _weighted_rule(question, branches),
    }
    per_unit = 1 if scores is None else scores.per_unit
    return Prepared(
        "tested-or-weighted",
        question,
        mechanism,
        {
            "epsilon_of_the_choice": up(branches.epsilon),
            "k_bar": depth,
            "epsilon_of_the_length": up(schedule.choice),
            "epsilon_per_pick": up(longest.price),
            "test_sigma": up(longest.test.sigma),
            "test_failure": up(schedule.failure),
            "full_items": weights.full_items,
            "most_items": weights.items if isinstance(weights, Clip) else weights.most_items,
            "sigma": up(branches.sigma / per_unit),
            "threshold": up(branches.threshold / per_unit),
            **unit_of(question),
        },
        up(1 / longest.price),
        "the item passes the rule of one of two methods; a twentieth of the budget chooses, with "
        f"noise, which. Tested as a whole: {rules[TESTED]}. Weighted: {rules[WEIGHTED]}",
        f"up to {k} items in order, by the method that was chosen",
        f"stands for items that cannot be named safely by the rule that was chosen; {EMPTY_ADVICE}",
        list_chosen,
        depth + 1,
        depth,
        rules,
    )


def _weighted_rule(question: Question, branches: Branches) -> str:
    """By which rule the second branch names an item."""
    weights, scores = branches.weights, question.scores
    sigma, threshold = branches.sigma, branches.threshold
    if scores is None or not isinstance(weights, Clip):
        assert isinstance(weights, Weights)
        return weighted_rule(weights, sigma, threshold)
    passes = half_and_likely(scores, sigma, threshold)
    return (
        f"what people add to the item, with noise added, exceeds {passes}; "
        f"{scaled_down(question, weights)}"
    )
