"""Two mechanisms and a private choice between them, calibrated together."""

from __future__ import annotations

from topsecret.calibration.prepared import EMPTY_ADVICE, Prepared, list_chosen
from topsecret.calibration.question import Question
from topsecret.calibration.unknown_domain import even_lead, likely_lead
from topsecret.calibration.weighted import weights_of
from topsecret.calibration.words import about, whole
from topsecret.exact.rounding import up
from topsecret.mechanisms import TestedOrWeighted
from topsecret.mechanisms.tested_or_weighted import TESTED, WEIGHTED
from topsecret.mechanisms.tested_schedule import default_k_bar


def tested_or_weighted(question: Question) -> Prepared:
    """`TestedOrWeighted`: picks for people who hold many things, weights for those with few."""
    k = question.length
    depth = question.k_bar if question.k_bar_given else default_k_bar(k)
    mechanism = TestedOrWeighted(k, question.epsilon, question.delta, depth, weights_of(question))
    branches = mechanism.branches
    schedule, weights = branches.tested.schedule, mechanism.weights
    longest, shortest = schedule.lengths[0], schedule.lengths[-1]
    threshold = about(up(branches.threshold))
    rules = {
        TESTED: "the item is among the largest by noisy counts, and the whole list passes a noisy "
        f"test: half of the time when its last item is {whole(even_lead(longest))} people ahead of "
        f"the item ranked {depth + 1}, the first that cannot be named (0 people where there are "
        f"fewer items), and 98% of the time at {whole(likely_lead(longest))}. With less, a shorter "
        f"list is likely, and an empty one if no item is {whole(even_lead(shortest))} ahead",
        WEIGHTED: "the item's weighted people and noise of "
        f"{about(up(branches.weighted.sigma))} exceed {threshold}; people with up to "
        f"{weights.full_items} items count in full for each, those with n items about "
        f"√({weights.full_items}/n) for each, and at most {weights.most_items} items of a person "
        "count",
    }
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
            "most_items": weights.most_items,
            "sigma": up(branches.weighted.sigma),
            "threshold": up(branches.threshold),
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
