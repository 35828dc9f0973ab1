"""Budgets on a terminal: bars of what is left, and lines of history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.text import Text

from topsecret.accounting.charge import in_words
from topsecret.cli.terminal import terminal
from topsecret.exact.rounding import rounded_up
from topsecret.ledger import Account, Entry
from topsecret.ledger.account import resource_left, what_is_left
from topsecret.ledger.amounts import from_text
from topsecret.results.export import printable

WIDEST = 40
HIDDEN = {"slack"}
"""Too technical for a picture: it never runs out before the others in queries of usual length."""


def draw(accounts: Iterable[Account]) -> None:
    """Print every budget as bars."""
    console = terminal()
    first = True
    for account in accounts:
        if not first:
            console.print()
        first = False
        _draw(console, account)
    if first:
        console.print("no budget is open; topsecret budget open opens one")


def _draw(console: Console, account: Account) -> None:
    epsilon, delta = (rounded_up(number) for number in account.budget.guarantee)
    state = "" if account.state == "open" else f", {account.state}"
    console.print(Text(f"{account.dataset} ({account.budget.kind}{state})", style="bold"))
    console.print(
        f"  all answers from it together: epsilon at most {epsilon}, delta at most {delta}, "
        f"for each {account.person!r} ({account.adjacency})"
    )
    for name, limit in account.budget.limits.items():
        if name not in HIDDEN:
            left = account.left[name]
            console.print(
                Text("  ")
                + _bar(left / limit, min(WIDEST, max(8, console.width - 45)))
                + Text(f"  {resource_left(name, left, limit)}")
            )
    for share in account.allowances:
        console.print(f"  {share.analyst}: {what_is_left(share.left, share.limits)}")
    for who, number in Counter(one.analyst for one in account.held).items():
        whose = f" of {who}" if who else ""
        console.print(f"  paid in advance: {number} question{'s' if number > 1 else ''}{whose}")
    for one in account.pending:
        who = f" by {one.analyst}" if one.analyst else ""
        console.print(
            f"  in doubt or under way: {one.id} of {one.time}{who}, {in_words(one.cost)}",
            style="yellow",
        )


def _bar(share: Fraction, width: int) -> Text:
    full = int(max(Fraction(0), share) * width)  # rounded down, as all that is left
    style = "green" if 2 * full > width else "yellow" if 5 * full > width else "red"
    return Text("█" * full, style=style) + Text("░" * (width - full), style="dim")


def told(entry: Entry) -> str:
    """One line of history."""
    body: dict[str, Any] = entry.record
    parts = [f"{entry.position:>5}", entry.time[:19].replace("T", " "), entry.event]
    parts += [str(body[name]) for name in ("reservation", "analyst") if body.get(name)]
    if body.get("cost"):
        parts.append(in_words(from_text(body["cost"])))
    return printable("  ".join(parts))
