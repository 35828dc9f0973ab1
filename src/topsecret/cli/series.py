"""``topsecret series``: a top list after every period under one budget, for cron."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated

import typer

from topsecret.cli.app import WeakPrivacyOption, app
from topsecret.cli.place import LedgerOption, open_ledger
from topsecret.cli.schedule import (
    Analyst,
    Dataset,
    Delta,
    Every,
    FirstDay,
    Item,
    Json,
    KindOption,
    Now,
    PaidBy,
    Person,
    Source,
    Table,
    Time,
    TrustView,
    WhereOption,
    Window,
    show_period,
    show_progress,
)

if TYPE_CHECKING:
    from topsecret.questions.series_terms import SeriesTerms

series = typer.Typer(
    no_args_is_help=True,
    help="A list after every period under one budget: plan, start, run, status.",
)
app.add_typer(series, name="series")

Epsilon = Annotated[float, typer.Option(help="Privacy budget of the whole series.")]
Length = Annotated[int, typer.Option("-k", "--k", help="How many items to name at most.")]
LastDay = Annotated[
    str | None, typer.Option(help="The last day; a window may go without.", metavar="DAY")
]
MaxCounts = Annotated[
    int | None,
    typer.Option(help="How many counts a person has for life.", show_default="10, 100 for windows"),
]
Name = Annotated[str, typer.Option(help="The series' name in the ledger.")]


@series.command()
def plan(
    persons: Annotated[int, typer.Option(help="About how many people, over the whole time.")],
    items_per_person: Annotated[float, typer.Option(help="About how many items each has.")],
    kth_count: Annotated[int, typer.Option(help="About how many people the k-th item has.")],
    periods: Annotated[int, typer.Option(help="How many periods.")],
    epsilon: Epsilon,
    k: Length = 10,
    delta: Delta = 1e-6,
    kind: KindOption = "cumulative",
    window: Window = 1,
    max_counts: MaxCounts = None,
    accept_weak_privacy: WeakPrivacyOption = False,
    json: Json = False,
) -> None:
    """Say what independent lists, a schedule and a series would find, from public guesses alone.

    topsecret series plan --persons 30000 --items-per-person 10 --kth-count 600 --periods 12
    --epsilon 1
    """
    from topsecret.questions.compare_over_time import compare_over_time

    found = compare_over_time(
        persons=persons,
        items_per_person=items_per_person,
        kth_count=kth_count,
        k=k,
        periods=periods,
        epsilon=epsilon,
        delta=delta,
        kind=kind,  # type: ignore[arg-type]  # checked there
        window=window,
        max_counts=max_counts,
    )
    if json:
        typer.echo(json_module.dumps(found.to_dict(), indent=2))
        return
    typer.echo(f"expected share of the true top {k}, mean of several times:")
    for way in found.ways:
        typer.echo(f"  {way.name:<12} {way.recall:.2f}  {way.words}")
    typer.echo("what other numbers of counts per person would do for the series:")
    for limit in found.limits:
        typer.echo(
            f"  {limit.max_counts:>4}  noise {limit.deviation:.3g}, named from "
            f"{limit.threshold:.4g} on, {limit.share:.0%} of the pairs count: {limit.recall:.2f}"
        )
    typer.echo(
        f"most is expected of: {found.best.name}. Rule of thumb for a year of weeks at epsilon 1: "
        "a series where people have few items, or the k-th item is 4 to 10 standard deviations "
        "of its noise "
        f"(here {found.kth_deviations:.2g}); else a schedule."
    )


@series.command()
def start(
    source: Source,
    item: Item,
    person: Person,
    time: Time,
    every: Every,
    epsilon: Epsilon,
    dataset: Dataset,
    until: LastDay = None,
    start: FirstDay = None,
    name: Name = "series",
    k: Length = 10,
    delta: Delta = 1e-6,
    kind: KindOption = "cumulative",
    window: Window = 1,
    max_counts: MaxCounts = None,
    late: Annotated[int, typer.Option(help="Count rows that come up to so many periods late.")] = 4,
    where: WhereOption = None,
    table: Table = None,
    trust_view: TrustView = False,
    ledger: LedgerOption = None,
    analyst: Analyst = None,
    accept_weak_privacy: WeakPrivacyOption = False,
) -> None:
    """Begin a series: pay for all its lists at once. Nothing is read yet.

    topsecret series start visits.parquet --item page --person customer --time day --every week
    --until 2027-12-31 --epsilon 1 --dataset shop --name weekly
    """
    from topsecret.questions.series import Series

    begun = Series(
        source,
        item=item[0] if len(item) == 1 else tuple(item),
        person=person,
        time=time,
        every=every,
        until=until,
        start=start,
        k=k,
        epsilon=epsilon,
        delta=delta,
        kind=kind,  # type: ignore[arg-type]  # checked there
        window=window,
        max_counts=max_counts,
        late=late,
        where=where or (),
        table=table,
        trust_view=trust_view,
        ledger=open_ledger(ledger),
        dataset=dataset,
        name=name,
        analyst=analyst,
    )
    _tell(begun.terms)


def _tell(terms: SeriesTerms) -> None:
    from topsecret.exact.rounding import rounded_up

    numbers = terms.numbers
    typer.echo(
        f"{numbers.periods} periods, a list after each; every person has {numbers.max_counts} "
        "counts for life"
    )
    for period in sorted({1, (numbers.periods + 1) // 2, numbers.periods}):
        need = rounded_up(numbers.threshold(period) / 1024, 4)
        typer.echo(
            f"  period {period:>4}: noise of {rounded_up(numbers.deviation(period), 4)} people "
            f"(standard deviation), named from {need} on"
        )
    typer.echo(
        f"all together epsilon {rounded_up(terms.asked['epsilon'], 6)} at delta "
        f"{terms.asked['delta']:g}"
    )
    for said in terms.caveats:
        typer.echo(f"rests on: {said}")


@series.command()
def run(
    source: Source,
    dataset: PaidBy,
    name: Name = "series",
    now: Now = None,
    table: Table = None,
    trust_view: TrustView = False,
    ledger: LedgerOption = None,
    accept_weak_privacy: WeakPrivacyOption = False,
    json: Json = False,
) -> None:
    """Draw the list of the last period and print it. Run it as often as you like.

    Exit code 0: the list was printed, drawn now or before. 2: a mistake, or the data or the ledger
    cannot be reached; nothing is lost, run it again.

    topsecret series run visits.parquet --dataset shop --name weekly
    """
    from topsecret.questions.series import Series

    found = Series.resume(
        source,
        ledger=open_ledger(ledger),
        dataset=dataset,
        name=name,
        table=table,
        trust_view=trust_view,
    ).run(now)
    show_period(found, json)


@series.command()
def status(
    dataset: PaidBy,
    name: Name = "series",
    ledger: LedgerOption = None,
    json: Json = False,
) -> None:
    """Show how far a series is. Only the ledger is read.

    topsecret series status --dataset shop --name weekly
    """
    from topsecret.questions.series_shown import progress

    show_progress(progress(open_ledger(ledger), dataset, name), json)
