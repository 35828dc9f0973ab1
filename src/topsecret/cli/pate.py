"""``topsecret pate``: private labels from a file of teachers' votes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topsecret.cli.app import app

if TYPE_CHECKING:
    from topsecret.pate import Aggregator, VoteRule
    from topsecret.pate.stored import StoredVotes


@app.command()
def pate(
    file: Annotated[
        str,
        typer.Argument(help="A .npz file: votes (queries × teachers × labels) or counts."),
    ],
    epsilon: Annotated[float, typer.Option(help="Privacy budget of all answers together.")],
    delta: Annotated[float, typer.Option(help="Probability that the guarantee fails.")] = 1e-6,
    method: Annotated[
        str, typer.Option(help="stable, pate, or pate-tau (with --max-votes).")
    ] = "stable",
    selection: Annotated[str, typer.Option(help="For stable: gumbel or gaussian.")] = "gumbel",
    max_votes: Annotated[
        int | None, typer.Option(help="For pate-tau: labels per ballot, at most.")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="How many to answer.", show_default="all in the file")
    ] = None,
    teachers: Annotated[
        int | None, typer.Option(help="How many teachers voted, for a file of counts.")
    ] = None,
    adjacency: Annotated[
        str, typer.Option(help="replace (one record changes one teacher), or add-remove.")
    ] = "replace",
    json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Answer queries with label sets, or nothing where the teachers are too close to call.

    topsecret pate votes.npz --epsilon 8

    topsecret pate votes.npz --epsilon 8 --method pate-tau --max-votes 4 --json
    """
    from topsecret.pate import Aggregator
    from topsecret.pate.stored import StoredVotes

    stored = StoredVotes.at(file)
    count = _teachers(stored, teachers)
    asked = stored.queries if queries is None else min(queries, stored.queries)
    rule = _rule(method, selection, max_votes, adjacency, stored, count, asked, epsilon, delta)
    aggregator = Aggregator(rule, epsilon=epsilon, delta=delta, queries=asked)
    write = _json_lines if json else _plain_lines
    write(aggregator, stored, asked)


def _teachers(stored: StoredVotes, given: int | None) -> int:
    from topsecret.errors import InvalidParameter

    if stored.kind == "votes":
        if given not in (None, stored.shape[1]):
            raise InvalidParameter(
                f"teachers={given} does not fit the {stored.shape[1]} of the file; leave it out"
            )
        return stored.shape[1]
    if given is None:
        raise InvalidParameter("a file of counts does not say how many voted; pass --teachers")
    return given


def _rule(
    method: str,
    selection: Any,
    max_votes: int | None,
    adjacency: Any,
    stored: StoredVotes,
    teachers: int,
    queries: int,
    epsilon: float,
    delta: float,
) -> VoteRule:
    from topsecret.errors import InvalidParameter
    from topsecret.pate import noisy_majority, stable_labels

    if method not in ("stable", "pate", "pate-tau"):
        raise InvalidParameter(f"method={method!r} must be 'stable', 'pate' or 'pate-tau'")
    if (method == "pate-tau") != (max_votes is not None):
        raise InvalidParameter("--max-votes goes with --method pate-tau, and only with it")
    labels = stored.shape[-1]
    budget: dict[str, Any] = {
        "queries": queries,
        "epsilon": epsilon,
        "delta": delta,
        "adjacency": adjacency,
    }
    if method == "stable":
        return stable_labels(labels, teachers, selection=selection, **budget)
    return noisy_majority(labels, teachers, max_votes=max_votes, **budget)


def _answers(aggregator: Aggregator, stored: StoredVotes, asked: int) -> Any:
    from itertools import islice

    from rich.console import Console
    from rich.progress import track

    stream = islice(iter(stored), asked)
    read = aggregator.answers if stored.kind == "votes" else aggregator.answers_of_counts
    bar = Console(stderr=True, quiet=not sys.stderr.isatty() or sys.stdout.isatty())
    return track(read(stream), "answering", total=asked, console=bar, transient=True)


def _json_lines(aggregator: Aggregator, stored: StoredVotes, asked: int) -> None:
    import json

    for answer in _answers(aggregator, stored, asked):
        chosen = None if answer.labels is None else [stored.names[i] for i in answer.labels]
        line = {
            "query": answer.number,
            "labels": chosen,
            "epsilon": answer.epsilon,
            "delta": answer.delta,
        }
        typer.echo(json.dumps(line, ensure_ascii=False))
    spent = aggregator.spent()
    whole = {"queries": aggregator.asked, "epsilon": spent.epsilon, "delta": spent.delta}
    typer.echo(json.dumps(whole | {"bound": spent.bound, "adjacency": aggregator.rule.adjacency}))


def _plain_lines(aggregator: Aggregator, stored: StoredVotes, asked: int) -> None:
    from topsecret.exact.rounding import rounded_up
    from topsecret.results.export import printable

    for answer in _answers(aggregator, stored, asked):
        chosen = "nothing: too close to call"
        if answer.labels is not None:
            chosen = ", ".join(printable(stored.names[i]) for i in answer.labels) or "no label"
        typer.echo(f"{answer.number:>7}  {chosen}")
    spent = aggregator.spent()
    relation = {
        "replace": "one training record, hence one teacher's votes, is replaced by any other",
        "add-remove": "one teacher is added or removed",
    }[aggregator.rule.adjacency]
    typer.echo(
        f"\n{aggregator.asked} queries answered with epsilon = {rounded_up(spent.epsilon)} and "
        f"delta = {rounded_up(spent.delta)} in all, by the {spent.bound} bound, when {relation}."
    )
