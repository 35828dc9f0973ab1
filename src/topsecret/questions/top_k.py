"""Ask for the most common items of a source: one list, or one for each public group of rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, Unpack

from topsecret.questions.answer import Free, Purse, answer
from topsecret.questions.question import Groups, Keywords, Question
from topsecret.results.group_releases import Group, Releases
from topsecret.results.release import Release
from topsecret.sources import Column, Expression, FileColumn, Sum
from topsecret.sources.open_source import SourceLike, Table, open_source

if TYPE_CHECKING:
    from topsecret.ledger import Ledger

__all__ = ["Column", "Expression", "FileColumn", "Sum", "top_k", "top_k_by"]

Asks = TypeVar("Asks", bound=Callable[..., object])


def _with_keywords(asks: Asks) -> Asks:
    """Let ``help`` show the keywords of a question, which type checkers see in ``Keywords``."""
    keywords = Keywords.__annotations__
    own = [p for p in inspect.signature(asks).parameters.values() if p.kind != p.VAR_KEYWORD]
    more = [p for p in inspect.signature(Question.of).parameters.values() if p.name in keywords]
    shown = sorted([*own, *more], key=lambda one: (one.kind, one.default is not one.empty))
    asks.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return asks


def purse_of(
    ledger: Ledger | None, dataset: str | None, analyst: str | None, request_id: str | None
) -> Purse:
    if ledger is None and dataset is None:
        return Free()
    from topsecret.questions.payment import purse

    return purse(ledger, dataset, analyst, request_id)


@_with_keywords
def top_k(
    source: SourceLike,
    *,
    table: Table | None = None,
    trust_view: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
    **asked: Unpack[Keywords],
) -> Release:
    """Name the ``k`` items with the most distinct people, with differential privacy.

    ``source`` has one row per event: a file or a pattern of files (CSV, TSV, JSON lines, Parquet),
    a database's URL or engine with its ``table``, a data frame. ``item`` is the column to rank, or
    several, or an ``Expression``; ``person`` the column that identifies each person. ``where``
    keeps rows by conditions ``(column, operator, value)``; ``max_items`` keeps that many items of
    each person, chosen by a secret ``salt``. ``domain`` lists all items where they are public: no
    threshold is needed then.

    ``measure="rows"`` ranks by rows and ``measure=Sum("price")`` by sums,
    each with a bound on what one person adds to one item, ``max_per_item``: a public number, or
    ``"private"`` for one that is chosen privately. ``max_total`` bounds all that one person adds.
    ``order="least"`` names the items of a public ``domain`` with the least. ``rise_from``, the
    conditions of an earlier period, ranks items by how many more people have them in ``where``;
    without a ``domain`` it ranks what private lists of both periods name.

    ``counts=True`` adds noisy counts with their intervals, for ``counts_part`` of the budget (0.15,
    or 0.2 below ten items); with ``count_persons=True`` the number of all people comes along at no
    cost.

    ``k="all"`` names everything that can be named safely, best first, and ``at_least`` what surely
    has so many people: by weighted people (``mechanism="weighted"``), of which those with many
    items count less, or with ``weighting="cap"`` fully for ``max_items`` of them. Each item then
    comes with a lower bound on how many people have it, not with a count.

    ``k_bar`` is how many leading items may be looked at, by default by a rule that knows k alone.
    ``k="auto"`` names as many items as the counts set apart clearly, as a set. ``mechanism="auto"``
    follows the public rule of ``plan``, which looks at the numbers given here. From four items of
    an unknown domain on, that is ``tested-or-weighted``: a twentieth of the budget is spent on
    a noisy look at the data, to choose between picks and weighted people, and the receipt says
    which was chosen. ``choose="public"`` never looks.

    ``delta`` is 1e-6 unless given, or the part of a flexible budget's delta that goes with epsilon
    where that is less. ``delta=0`` with a ``domain`` answers with a pure guarantee, epsilon alone:
    as a set of a private size where that finds more, as a list where ``ordered=True`` asks for one.
    ``fill=True`` completes a set to k items at random, and the release says which.

    A view is analysed: one whose rows depend on other people's rows is refused, with the clause
    that mixes them. ``trust_view=True`` is the data owner's word that it does not; the receipt
    says so.

    With a ``ledger`` the answer is paid for from the budget of ``dataset``, in the name of
    ``analyst`` if it has allowances. A metered budget sets the price: leave ``epsilon`` out. The
    same question again returns the stored answer, which is free; a ``request_id`` of your choice
    makes it safe to repeat a call whose outcome you did not see. Files are known by their
    paths and the time of writing, databases by their addresses; of data frames and open
    connections nothing is known, and each question is paid for unless ``version`` says, in your
    words, which data it is about.

    Parameters: ``source``: where the rows are: a file, a database's URL or engine, a data frame;
    ``table``: the table or view, where the source is a database; with its schema as a pair;
    ``trust_view``: the data owner's word that each row of a view depends on its own person alone;
    ``ledger``: the ledger that pays; without one nothing is recorded; ``dataset``: whose budget in
    the ledger pays; ``analyst``: in whose name it is asked, where the budget has allowances;
    ``request_id``: a name of your choice that makes it safe to repeat a call.

    The keywords, ``asked``, stand in a table on the package's page of the reference.

    *Guarantee.* The returned items, how the list ended and the counts are together
    (``epsilon``, ``delta``)-differentially private under adding or removing one person with all
    their rows, however many. The release states what is proven, never more than was asked for.
    """
    pays = purse_of(ledger, dataset, analyst, request_id)
    question = Question.of(pays.terms, **asked)
    release = answer(question, open_source(source, table, trust_view=trust_view), pays)
    assert isinstance(release, Release)  # one list was asked for
    return release


@_with_keywords
def top_k_by(
    source: SourceLike,
    *,
    by: str | Expression,
    groups: Sequence[Group],
    disjoint: bool = False,
    table: Table | None = None,
    trust_view: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
    **asked: Unpack[Keywords],
) -> Releases:
    """``top_k`` for each value of ``by``, a column or an expression, that ``groups`` lists.

    The groups are named by the caller, never found in the data: that a group exists may give
    somebody away.

    With ``disjoint`` each person is kept in one group alone: with rows in several, in the one
    that a secret hash chooses. Each group then has the whole budget. Without it a person counts
    in all their groups and the budget is divided among them.

    With a ``ledger`` all lists are one query of ``dataset``, which needs a flexible budget.

    Parameters, beside those of ``top_k``: ``by``: the column, or expression, that defines the
    groups; ``groups``: the groups to answer for, by their values; ``disjoint``: whether each person
    is kept in one group alone.

    *Guarantee.* All lists together are (``epsilon``, ``delta``)-differentially private. With
    ``disjoint`` one person more or less changes the counts of a single group, whichever it is
    (parallel composition, enforced in the query); otherwise by composition of all groups.
    """
    wanted = Groups(by, tuple(groups) if not isinstance(groups, str) else (), disjoint)
    pays = purse_of(ledger, dataset, analyst, request_id)
    question = Question.of(pays.terms, wanted, **asked)
    releases = answer(question, open_source(source, table, trust_view=trust_view), pays)
    assert isinstance(releases, Releases)  # groups were asked for
    return releases
