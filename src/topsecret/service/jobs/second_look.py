"""What is looked at again once a question has an engine, right before its rows are read.

Between its reservation and that moment a question may wait for long. Where an owner has withdrawn
its column, a condition's, its analyst's share or the whole dataset meanwhile, nothing is read and
what was reserved is given back: no row has a part in that. A file that was written meanwhile is not
read either, but stays charged (``service.data_files``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from topsecret.errors import Closing, InvalidParameter, LedgerError, RulesChanged
from topsecret.service.pasted_sql import asked_in_sql
from topsecret.service.problems import Problem

if TYPE_CHECKING:
    from topsecret.service.datasets import Dataset, Datasets
    from topsecret.service.jobs.job import Asked


def second_look(
    datasets: Datasets, dataset: Dataset, asked: Asked, may_ask: Callable[[], object]
) -> Callable[[], None]:
    """What raises where the question may not be asked by then, or its file is not as it is now."""
    check_file = datasets.watched(dataset)

    def look() -> None:
        _by_rules(may_ask)
        check_file()
        if asked.query is not None:  # after the file: the query is opened once more for it
            _by_rules(partial(_check_columns_of_query, datasets, dataset, asked))

    return look


def _by_rules(check: Callable[[], object]) -> None:
    """A refusal that costs nothing; without the service's own store the question waits again."""
    try:
        check()
    except Problem as problem:
        words = problem.message
    except InvalidParameter as error:
        words = str(error)
    except LedgerError:
        words = ""
    else:
        return
    if not words:
        raise Closing("the rules cannot be looked up: the question is tried again later")
    raise RulesChanged(
        f"Nothing was charged: the rules changed while this question waited for an engine. {words}"
    )


def _check_columns_of_query(datasets: Datasets, dataset: Dataset, asked: Asked) -> None:
    """A query reads the columns that may be asked or chosen by today, of the same events."""
    now = datasets.get(dataset.name)
    if {*now.columns, *now.filters}.issuperset((*dataset.columns, *dataset.filters)):
        return  # nothing was withdrawn
    known = replace(dataset, columns=now.columns, filters=now.filters)
    asked_in_sql(datasets, known, asked.query or "", asked.epsilon)
