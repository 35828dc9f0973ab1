"""``topsecret schedule``: top lists at public times under one budget, for cron."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topsecret.cli.app import WeakPrivacyOption, app
from topsecret.cli.place import LedgerOption, open_ledger

if TYPE_CHECKING:
    from topsecret.questions.schedule_terms import ScheduleTerms
    from topsecret.results.period_list import PeriodList

schedule = typer.Typer(
    no_args_is_help=True,
    help="Lists at public times under one budget: plan, start, run, status, write-off.",
)
app.add_typer(schedule, name="schedule")

Source = Annotated[
    str,
    typer.Argument(help="A file, a pattern in quotes, a DuckDB database, or a database's URL."),
]
Item = Annotated[
    list[str], typer.Option(help="The column to rank; several name a tuple.", metavar="COLUMN")
]
Person = Annotated[
    str, typer.Option(help="The column that identifies each person.", metavar="COLUMN")
]
Time = Annotated[str, typer.Option(help="The column that says when.", metavar="COLUMN")]
Every = Annotated[str, typer.Option(help="day, week, month, quarter, year, or '2 weeks'.")]
Start = Annotated[str, typer.Option(help="The first day, such as 2026-01-05.", metavar="DAY")]
Until = Annotated[str, typer.Option(help="The last day.", metavar="DAY")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget of the whole schedule.")]
Delta = Annotated[float, typer.Option(help="Delta, a probability added to what epsilon allows.")]
Length = Annotated[
    str, typer.Option("-k", "--k", help="How many items to name at most; auto, or all.")
]
KindOption = Annotated[str, typer.Option(help="cumulative, or window.")]
Window = Annotated[int, typer.Option(help="How many periods a window has.")]
Mechanism = Annotated[str, typer.Option(help="How to choose; see topsecret top.")]
Table = Annotated[str | None, typer.Option(help="The table of a database.")]
Dataset = Annotated[str, typer.Option(help="Pay from this dataset's budget.")]
PaidBy = Annotated[str, typer.Option(help="The dataset whose budget paid.")]
Now = Annotated[
    str | None,
    typer.Option(help="The day that counts as today.", metavar="DAY", show_default="today"),
]
WhereOption = Annotated[
    list[str] | None, typer.Option(help="Count these rows only, an SQL condition.")
]
Analyst = Annotated[str | None, typer.Option(help="Pay from this analyst's allowance.")]
FirstDay = Annotated[
    str | None, typer.Option(help="The first day.", metavar="DAY", show_default="today")
]
Name = Annotated[str, typer.Option(help="The schedule's name in the ledger.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
TrustView = Annotated[
    bool, typer.Option("--trust-view", help="The table is a view that mixes no people.")
]


@schedule.command()
def plan(
    every: Every,
    start: Start,
    until: Until,
    epsilon: Epsilon,
    k: Length = "10",
    delta: Delta = 1e-6,
    kind: KindOption = "cumulative",
    window: Window = 1,
    mechanism: Mechanism = "auto",
    accept_weak_privacy: WeakPrivacyOption = False,
    json: Json = False,
) -> None:
    """Say when lists would be drawn and what each may cost, from public numbers alone.

    topsecret schedule plan --every week --start 2026-01-05 --until 2026-12-31 --epsilon 1
    """
    from topsecret.cli.length import length
    from topsecret.questions.schedule_terms import schedule_plan, terms_of

    terms = terms_of(
        item="item",
        person="person",
        time="time",
        every=every,
        start=start,
        until=until,
        k=length(k),
        epsilon=epsilon,
        delta=delta,
        kind=kind,
        window=window,
        mechanism=mechanism,
    )
    found = schedule_plan(terms)
    if json:
        typer.echo(json_module.dumps(_described(terms, found), indent=2))
        return
    _tell(terms, found)


def _described(terms: ScheduleTerms, found: Any) -> dict[str, object]:
    return {
        "periods": terms.periods.count,
        "due": [
            {"period": period, "rows_until": str(terms.periods.bounds(period)[1])}
            for period in terms.due
        ],
        "lists": found.lists,
        "epsilon": found.epsilon,
        "delta": found.delta,
        "epsilon_per_list": found.each.epsilon,
        "mechanism": found.each.selection.name,
    }


def _tell(terms: ScheduleTerms, found: Any) -> None:
    from topsecret.exact.rounding import rounded_up

    lists = "1 list" if found.lists == 1 else f"{found.lists} lists"
    typer.echo(f"{terms.periods.count} periods, {lists}, held in between:")
    for period in terms.due:
        start, end = terms.periods.bounds(period)
        typer.echo(f"  after period {period:>4}: {start} until before {end}")
    typer.echo(
        f"each list with epsilon {rounded_up(found.each.epsilon, 3)} "
        f"({found.each.selection.name}), all together {rounded_up(found.epsilon, 6)} "
        f"at delta {found.delta:g}"
    )


@schedule.command("start")
def begin(
    source: Source,
    item: Item,
    person: Person,
    time: Time,
    every: Every,
    until: Until,
    epsilon: Epsilon,
    dataset: Dataset,
    start: FirstDay = None,
    name: Name = "schedule",
    k: Length = "10",
    delta: Delta = 1e-6,
    kind: KindOption = "cumulative",
    window: Window = 1,
    mechanism: Mechanism = "auto",
    where: WhereOption = None,
    max_items: Annotated[
        int | None, typer.Option(help="Count at most this many items of each person.")
    ] = None,
    counts: Annotated[bool, typer.Option("--counts", help="Release noisy counts, too.")] = False,
    table: Table = None,
    trust_view: TrustView = False,
    ledger: LedgerOption = None,
    analyst: Analyst = None,
    accept_weak_privacy: WeakPrivacyOption = False,
) -> None:
    """Begin a schedule: pay for all its lists at once. Nothing is read yet.

    topsecret schedule start visits.parquet --item page --person customer --time day --every week
    --until 2027-12-31 --epsilon 1 --dataset shop --name weekly
    """
    from topsecret.cli.length import length
    from topsecret.questions.schedule import Schedule

    begun = Schedule(
        source,
        item=item[0] if len(item) == 1 else tuple(item),
        person=person,
        time=time,
        every=every,
        until=until,
        start=start,
        k=length(k),
        epsilon=epsilon,
        delta=delta,
        kind=kind,  # type: ignore[arg-type]  # checked there
        window=window,
        mechanism=mechanism,
        where=where or (),
        max_items=max_items,
        counts=counts,
        table=table,
        trust_view=trust_view,
        ledger=open_ledger(ledger),
        dataset=dataset,
        name=name,
        analyst=analyst,
    )
    _tell(begun.terms, begun.plan)


@schedule.command()
def run(
    source: Source,
    dataset: PaidBy,
    name: Name = "schedule",
    now: Now = None,
    table: Table = None,
    trust_view: TrustView = False,
    ledger: LedgerOption = None,
    accept_weak_privacy: WeakPrivacyOption = False,
    json: Json = False,
) -> None:
    """Draw the lists that are due and print the current one. Run it as often as you like.

    Exit code 0: the list is the one of the schedule. 1: a list that was due has been cut short,
    and the last one before it is shown; see write-off. 2: a mistake, or the data or the ledger
    cannot be reached; nothing is lost, run it again.

    topsecret schedule run visits.parquet --dataset shop --name weekly
    """
    from topsecret.questions.schedule import Schedule

    found = Schedule.resume(
        source,
        ledger=open_ledger(ledger),
        dataset=dataset,
        name=name,
        table=table,
        trust_view=trust_view,
    ).run(now)
    show_period(found, json)
    if found.cut_short:
        periods = ", ".join(map(str, found.cut_short))
        typer.echo(
            f"topsecret: the list of period {periods} was cut short and is not drawn again "
            "unless the owner writes it off (topsecret schedule write-off)",
            err=True,
        )
        raise typer.Exit(1)


def show_period(found: PeriodList, json: bool) -> None:
    """The list of a period on the terminal, or as JSON."""
    if json:
        typer.echo(found.to_json())
        return
    from topsecret.cli.render import show, show_together

    typer.echo(found.title)
    if found.release is not None:
        typer.echo()
        show(found.release)
    show_together(found.together)


def show_progress(found: dict[str, Any], json: bool) -> None:
    """How far a publication is."""
    if json:
        typer.echo(json_module.dumps(found, indent=2))
        return
    periods, lists = found["periods"], len(found["lists"])
    typer.echo(
        f"{found['name']}: {periods} {'period' if periods == 1 else 'periods'}, "
        f"{lists} {'list' if lists == 1 else 'lists'}"
    )
    for one in found["lists"]:
        typer.echo(f"  period {one['period']:>4}, rows until before {one['end']}: {one['state']}")


@schedule.command()
def status(
    dataset: PaidBy,
    name: Name = "schedule",
    ledger: LedgerOption = None,
    json: Json = False,
) -> None:
    """Show how far a schedule is. Only the ledger is read.

    topsecret schedule status --dataset shop --name weekly
    """
    from topsecret.questions.schedule import progress

    show_progress(progress(open_ledger(ledger), dataset, name), json)


@schedule.command("write-off")
def write_off(
    period: Annotated[int, typer.Argument(help="The period whose list was cut short.")],
    dataset: PaidBy,
    name: Name = "schedule",
    ledger: LedgerOption = None,
) -> None:
    """Let a list be drawn again, on your word as the owner that nobody saw it.

    topsecret schedule write-off 8 --dataset shop --name weekly
    """
    from topsecret.questions.schedule import write_off_list

    write_off_list(open_ledger(ledger), dataset, name, period)
    typer.echo(f"{name}: period {period} is drawn again when it is run")
