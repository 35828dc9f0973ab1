"""Which questions may be put to a dataset, by public rules."""

from __future__ import annotations

from topsecret.ledger import Metered
from topsecret.service.datasets import Dataset, Datasets
from topsecret.service.filters import conditions
from topsecret.service.jobs.answering import not_now
from topsecret.service.jobs.job import Asked
from topsecret.service.pasted_sql import NOT_IN_SQL
from topsecret.service.problems import Problem
from topsecret.service.ranked_by import check_sum


def fixed_price(datasets: Datasets, dataset: str) -> bool:
    """Whether the owner fixed the price."""
    return isinstance(datasets.account(dataset).budget, Metered)


def may_be_asked(datasets: Datasets, name: str, dataset: str, asked: Asked) -> Dataset:
    """The dataset, when the question can be put to it; all by public rules."""
    known = datasets.asked_by(dataset, name)
    asked.check()
    if asked.query is None and asked.column not in known.columns:
        raise Problem(
            400, "invalid", f"This column cannot be asked; choose from: {', '.join(known.columns)}"
        )
    if asked.query is not None and not known.sql:  # a saved one, of an earlier registration
        raise Problem(400, "invalid", NOT_IN_SQL)
    if known.state is not None:
        raise Problem(409, known.state, not_now(known.state))
    if asked.where:
        conditions(asked.where, known.filters)
    by = asked.ranked_by
    if by is not None:
        if asked.query is None:
            check_sum(by, known.filters)
        if isinstance(asked.k, str) or asked.counts or asked.at_least is not None:
            words = "Rows and sums need a number k, without counts and at_least."
            raise Problem(400, "invalid", words)
        if by.measure.bounds and fixed_price(datasets, dataset):
            words = "At a fixed price max_per_item is one number that you choose."
            raise Problem(400, "invalid", words)
        if by.measure.total and fixed_price(datasets, dataset):
            raise Problem(400, "invalid", "At a fixed price max_total is not offered.")
    if asked.grouped_by is not None:
        if fixed_price(datasets, dataset):
            raise Problem(400, "invalid", "At a fixed price there is one list: leave groups out.")
        asked.grouped_by.groups(known.filters)
        if isinstance(asked.k, str) or asked.at_least is not None:
            raise Problem(400, "invalid", "Groups need a number k, without at_least.")
        if asked.grouped_by.disjoint and by is not None and (by.measure.bounds or by.measure.total):
            words = (
                "Where each person is kept in one group, max_per_item is one number that you "
                "choose, without max_total."
            )
            raise Problem(400, "invalid", words)
    if asked.counts and (asked.k == "all" or asked.at_least is not None):
        raise Problem(400, "invalid", "With all safe values come lower bounds: leave counts out.")
    if asked.k == "auto" and asked.at_least is not None:
        raise Problem(400, "invalid", "With at_least k must be a number, or all.")
    if fixed_price(datasets, dataset):
        if asked.epsilon is not None:
            raise Problem(400, "invalid", "The owner fixed the price: leave epsilon out.")
        if isinstance(asked.k, str) or asked.counts or asked.at_least is not None:
            words = "At a fixed price k must be a number, without counts and at_least."
            raise Problem(400, "invalid", words)
    elif asked.epsilon is None:
        raise Problem(400, "invalid", "State an epsilon: what to spend on this question.")
    return known
