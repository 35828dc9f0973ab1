"""``topsecret pate``: private labels from a file of teachers' votes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topsecret.cli.app import WeakPrivacyOption, app

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
    delta: Annotated[
        float, typer.Option(help="Delta, a probability added to what epsilon allows.")
    ] = 1e-6,
    soft: Annotated[
        bool,
        typer.Option(
            "--soft",
            help="Shares of whole ballots where neither --max-votes nor --weight-limit is given; "
            "without --soft a public rule limits them.",
        ),
    ] = False,
    output: Annotated[
        str | None, typer.Option(help="For shares: a .npz or .csv file for them.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="What the budget buys; reads no votes.")
    ] = False,
    method: Annotated[
        str,
        typer.Option(help="auto: noisy shares. Label sets: stable, pate, pate-tau (--max-votes)."),
    ] = "auto",
    selection: Annotated[str, typer.Option(help="For stable: gumbel or gaussian.")] = "gumbel",
    max_votes: Annotated[
        int | None, typer.Option(help="For pate-tau and --soft: labels per ballot, at most.")
    ] = None,
    weight_limit: Annotated[
        int | None, typer.Option(help="For --soft: weight ballots of more labels than this.")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="How many to answer.", show_default="all in the file")
    ] = None,
    teachers: Annotated[
        int | None, typer.Option(help="How many teachers voted, for a file of counts.")
    ] = None,
    adjacency: Annotated[
        str, typer.Option(help="replace (one teacher votes otherwise), or add-remove.")
    ] = "replace",
    accept_weak_privacy: WeakPrivacyOption = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Answer queries with the noisy share of the teachers for each label, or with label sets.

    topsecret pate votes.npz --epsilon 8

    topsecret pate votes.npz --epsilon 2 --soft --max-votes 4 --output shares.npz

    topsecret pate votes.npz --epsilon 8 --method pate-tau --max-votes 4 --json
    """
    from topsecret.pate import Aggregator
    from topsecret.pate.stored import StoredVotes

    stored = StoredVotes.at(file)
    count = _teachers(stored, teachers)
    asked = stored.queries if queries is None else min(queries, stored.queries)
    if plan:
        typer.echo(_plan(stored, count, asked, epsilon, delta, adjacency))
        return
    _check_soft(soft, method, output, weight_limit)
    budget: dict[str, Any] = {
        "queries": asked,
        "epsilon": epsilon,
        "delta": delta,
        "adjacency": adjacency,
    }
    if soft or method == "auto":
        from topsecret.pate import noisy_shares

        cut = max_votes if soft else _cut(max_votes, weight_limit, stored, count, budget)
        rule: Any = noisy_shares(
            stored.shape[-1], count, max_votes=cut, weight_limit=weight_limit, **budget
        )
    else:
        rule = _rule(method, selection, max_votes, stored, count, budget)
    aggregator = Aggregator(rule, epsilon=epsilon, delta=delta, queries=asked)
    if output is not None:
        _write_shares(aggregator, stored, asked, output)
        return
    write = _json_lines if json else _plain_lines
    write(aggregator, stored, asked)


def _plan(
    stored: StoredVotes, teachers: int, queries: int, epsilon: float, delta: float, adjacency: Any
) -> str:
    from topsecret.pate import plan_answers

    labels = stored.shape[-1]
    numbers: dict[str, Any] = {"queries": queries, "epsilon": epsilon, "delta": delta}
    return str(plan_answers(labels, teachers, **numbers, adjacency=adjacency))


def _check_soft(soft: bool, method: str, output: str | None, weight_limit: int | None) -> None:
    from topsecret.errors import InvalidParameter

    if method not in ("auto", "stable", "pate", "pate-tau"):
        raise InvalidParameter(f"method={method!r} must be 'auto', 'stable', 'pate' or 'pate-tau'")
    if soft and method != "auto":
        raise InvalidParameter(f"--soft does not go with --method {method}; leave one of them out")
    if method != "auto" and (output is not None or weight_limit is not None):
        raise InvalidParameter(
            "--output and --weight-limit go with shares, and only with them; "
            f"leave them out, or --method {method}"
        )
    if output is not None and not output.endswith((".npz", ".csv")):
        raise InvalidParameter(f"--output {output} must end in .npz or .csv")


def _cut(
    max_votes: int | None,
    weight_limit: int | None,
    stored: StoredVotes,
    teachers: int,
    budget: dict[str, Any],
) -> int | None:
    """The cut of method="auto", as in ``PateClassifier``; counts are of whole ballots."""
    from topsecret.pate.plan import recommended_cut

    if max_votes is not None or weight_limit is not None or stored.kind != "votes":
        return max_votes
    return recommended_cut(stored.shape[-1], teachers, **budget)


def _write_shares(aggregator: Aggregator, stored: StoredVotes, asked: int, path: str) -> None:
    """The shares with the standard deviation of their noise, and what they cost."""
    from topsecret.pate.stored import write_shares

    shares = [answer.shares for answer in _answers(aggregator, stored, asked)]
    spent = aggregator.spent()
    rule: Any = aggregator.rule
    write_shares(path, shares, stored.names, rule.share_deviation, spent.epsilon, spent.delta)
    _say_spent(aggregator)


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
    stored: StoredVotes,
    teachers: int,
    budget: dict[str, Any],
) -> VoteRule:
    from topsecret.errors import InvalidParameter
    from topsecret.pate import noisy_majority, stable_labels

    if (method == "pate-tau") != (max_votes is not None):
        raise InvalidParameter(
            "--max-votes goes with --method pate-tau, and only with it; pass both or neither"
        )
    labels = stored.shape[-1]
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

    from topsecret.accounting.weak_privacy import weakness

    for answer in _answers(aggregator, stored, asked):
        chosen = None if answer.labels is None else [stored.names[i] for i in answer.labels]
        line: dict[str, Any] = {
            "query": answer.number,
            "labels": chosen,
            "epsilon": answer.epsilon,
            "delta": answer.delta,
        }
        if answer.shares is not None:
            line["shares"] = dict(zip(stored.names, answer.shares, strict=True))
        typer.echo(json.dumps(line, ensure_ascii=False))
    spent = aggregator.spent()
    whole: dict[str, Any] = {"queries": aggregator.asked}
    whole |= {"epsilon": spent.epsilon, "delta": spent.delta}
    whole |= {"bound": spent.bound, "adjacency": aggregator.rule.adjacency}
    if (weak := weakness(spent.epsilon, spent.delta)) is not None:
        whole["weak"] = weak
    if hasattr(aggregator.rule, "share_deviation"):
        whole["share_deviation"] = aggregator.rule.share_deviation
    typer.echo(json.dumps(whole))


def _plain_lines(aggregator: Aggregator, stored: StoredVotes, asked: int) -> None:
    from topsecret.results.export import printable

    for answer in _answers(aggregator, stored, asked):
        chosen = "nothing: the votes are too close"
        if answer.shares is not None:
            pairs = zip(stored.names, answer.shares, strict=True)
            chosen = "  ".join(f"{printable(name)} {share:.2f}" for name, share in pairs)
        elif answer.labels is not None:
            chosen = ", ".join(printable(stored.names[i]) for i in answer.labels) or "no label"
        typer.echo(f"{answer.number:>7}  {chosen}")
    _say_spent(aggregator)


def _say_spent(aggregator: Aggregator) -> None:
    from topsecret.accounting.weak_privacy import weak_sentence
    from topsecret.exact.rounding import rounded_up

    spent = aggregator.spent()
    relation = {
        "replace": "one teacher's votes are replaced. That covers one training record only if "
        "every record was used to train a single teacher, which this command cannot check",
        "add-remove": "one teacher is added or removed; it does not cover one training record, "
        "which may change a teacher's votes",
    }[aggregator.rule.adjacency]
    typer.echo(
        f"\n{aggregator.asked} queries answered with epsilon = {rounded_up(spent.epsilon)} and "
        f"delta = {rounded_up(spent.delta)} in all, by the {spent.bound} bound, when {relation}. "
        "Nothing was recorded in a ledger." + weak_sentence(spent.epsilon, spent.delta)
    )
    deviation = getattr(aggregator.rule, "share_deviation", None)
    if deviation is not None:
        typer.echo(f"The noise of every share has a standard deviation of {deviation:.4g}.")
