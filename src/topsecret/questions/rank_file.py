"""Rank the items of a table of comparisons: the place where such a table and a ranking meet.

As in ``top_k.py``, everything that can be wrong with the parameters is found before a row is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from topsecret.accounting import failure, pure
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.accounting.weak_privacy import check_strength
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact

if TYPE_CHECKING:
    from topsecret.ledger import Ledger
    from topsecret.ranking import Comparisons, Ranking, StrengthRanking
    from topsecret.sources.matches import MatchQuery
    from topsecret.sources.session import Engine

METHODS = ("strength", "counting", "spectral")
EACH_COMPARISON = "each comparison"
"""Whom a budget protects where no column names the people."""
FORM = 2
"""The version of the fingerprint and of the record."""


def rank_file(
    source: Any,
    *,
    winner: str,
    loser: str,
    epsilon: Number,
    k: int | None = None,
    tie: str | None = None,
    method: Literal["strength", "counting", "spectral"] = "strength",
    teleport: Number | None = None,
    delta: Number | None = None,
    person: str | None = None,
    comparisons_per_person: int | None = None,
    table: str | tuple[str, ...] | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
    version: str | None = None,
) -> StrengthRanking | Ranking:
    """Rank by who beat whom in a file or table with one comparison per row.

    ``source`` is whatever ``top_k`` takes: a path (CSV, TSV, JSON lines, Parquet), a database's URL
    or engine with ``table``, a DuckDB connection, a data frame. Naming the columns declares the
    schedule, who met whom and how often, public; the receipt says so.

    ``method`` is "strength" (Bradley–Terry, all items with error bars), "counting" (wins) or
    "spectral". ``person`` names the column of who decided a comparison: at most
    ``comparisons_per_person`` are kept of each, and how that person decided all of them is
    protected. With ``delta`` the noise of strength is Gaussian: more at the same epsilon, but it
    composes better with other such releases. ``teleport`` (0.3 by default) is for "spectral".

    With a ``ledger`` the ranking is paid for from the budget of ``dataset``, a flexible one that
    was opened with ``adjacency="outcomes"`` for ``person`` ("each comparison" where none is
    named): the schedule is not protected.

    Parameters: ``source``: where the rows are, as for ``top_k``; ``winner``: the column of who won;
    ``loser``: the column of who lost; ``epsilon``: how much one outcome, or one person, may change
    the chance of any answer; ``k``: how many items; all without it; ``tie``: the column that says
    whether nobody won; ``method``: strength, counting (wins) or spectral; ``teleport``: how often
    the walk of spectral jumps; 0.3 without it; ``delta``: a probability that is added to what
    epsilon allows; ``person``: the column of who decided, to protect all that one person decided
    (strength alone);
    ``comparisons_per_person``: how many of each person are kept; ``table``: the table or view,
    where the source is a database; ``ledger``: the ledger that pays; ``dataset``: whose budget
    pays; ``analyst``: in whose name it is asked; ``request_id``: a name of your choice that makes
    it safe to repeat a call; ``version``: which data this is, in your words.

    *Guarantee.* (``epsilon``, ``delta``)-DP for neighbours that differ in one comparison's outcome,
    or with ``person`` in all outcomes of one person.
    """
    from topsecret.sources.matches import MatchQuery
    from topsecret.sources.open_source import open_source

    query = MatchQuery(winner, loser, tie, person, comparisons_per_person)
    ranked = _ranker(method, epsilon, k, teleport, delta, person)
    opened = open_source(source, table)
    engine = _engine(opened)
    if ledger is None and dataset is None:
        return ranked(_compared(engine, query))
    from topsecret.questions.payment import paid_in_full, purse
    from topsecret.sources.source import source_fingerprint

    told, recognised = source_fingerprint(opened, version)
    asked = {
        "form": FORM,
        "measure": "comparisons",
        "source": told,
        "counted": [winner, loser, tie, person, comparisons_per_person],
        "method": method,
        "k": k,
        "epsilon": str(exact(epsilon)),
        "delta": None if delta is None else str(exact(delta)),
        "teleport": None if teleport is None else str(exact(teleport)),
    }
    # (ε, δ)-DP is all that is known here of the three methods; both amounts are paid in full.
    loss = pure(epsilon) if delta is None else pure(epsilon) + failure(delta)
    record, charge = paid_in_full(
        purse(ledger, dataset, analyst, request_id),
        loss=loss,
        asked=asked,
        unit=PrivacyUnit(person or EACH_COMPARISON, adjacency="outcomes"),
        repeatable=recognised,
        draw=lambda: _to_record(ranked(_compared(engine, query))),
    )
    return replace(_from_record(record), charge=charge)


def _to_record(ranking: StrengthRanking | Ranking) -> dict[str, object]:
    # What was charged is the ledger's to say, each time that the answer is shown.
    names = [one.name for one in fields(ranking) if one.name != "charge"]
    values = {name: getattr(ranking, name) for name in names}
    # As text: a standard error may be infinite, which the ledger's JSON does not know.
    return {
        "form": FORM,
        "kind": type(ranking).__name__,
        "fields": json.dumps(values, default=dict),
    }


def _from_record(record: Mapping[str, Any]) -> StrengthRanking | Ranking:
    from topsecret.ranking import Ranking, StrengthRanking

    kind: Any = {"Ranking": Ranking, "StrengthRanking": StrengthRanking}[record["kind"]]
    values = json.loads(record["fields"])
    return cast(
        "StrengthRanking | Ranking",
        kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}),
    )


def _ranker(
    method: str,
    epsilon: Number,
    k: int | None,
    teleport: Number | None,
    delta: Number | None,
    person: str | None,
) -> Callable[[Comparisons], StrengthRanking | Ranking]:
    """Check every parameter; what is left to do with the comparisons."""
    if method not in METHODS:
        raise InvalidParameter(f"method={method!r} must be 'strength', 'counting' or 'spectral'")
    if exact(epsilon, "epsilon") <= 0:
        raise InvalidParameter(f"epsilon={epsilon} must be above 0; 1 is a common choice")
    check_strength(epsilon, delta or 0)  # before paying: to some a warning is an error
    if k is not None and k < 1:
        raise InvalidParameter(f"k={k} must be at least 1; ask for one item or more")
    if person is not None and method != "strength":
        raise InvalidParameter(f"person={person!r} needs method='strength'; leave one of them out")
    if method != "spectral" and teleport is not None:
        raise InvalidParameter(f"{method} has no teleport; leave it out")
    from topsecret.ranking import counting, spectral, strength
    from topsecret.ranking.sensitivity import teleport_of
    from topsecret.ranking.win_totals import NoisyTotals

    if method == "strength":
        NoisyTotals(epsilon, delta)
        return lambda games: strength(games, epsilon=epsilon, delta=delta, k=k, person=person)
    if method == "counting":
        if delta is not None:
            raise InvalidParameter("counting has no delta; leave it out")
        return lambda games: counting(games, k=k, epsilon=epsilon)
    if k is None:
        raise InvalidParameter(
            "spectral needs a k, since its noise grows with the length of the list; "
            "pass k=10, or use strength for all items"
        )
    theta, length = teleport_of(0.3 if teleport is None else teleport), k
    return lambda games: spectral(games, k=length, epsilon=epsilon, delta=delta, teleport=theta)


def _engine(opened: object) -> Engine:
    from topsecret.sources.session import Engine

    if isinstance(opened, Engine):
        return opened
    raise InvalidParameter("comparisons are read from a file, a database or a data frame")


def _compared(engine: Engine, query: MatchQuery) -> Comparisons:
    from topsecret.ranking import Comparisons
    from topsecret.sources.matches import read_matches

    read = read_matches(engine, query)
    return Comparisons.from_codes(
        read.winners,
        read.losers,
        items=read.items,
        ties=read.ties,
        counts=read.counts,
        per_person=query.most_per_person or 1,
        schedule="public",
    )
