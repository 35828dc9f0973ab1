"""Questions in every state, about names that are long or written from right to left."""

import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from serving import PASSWORD, Server
from sqlalchemy import select, update

from topsecret.accounting import zcdp
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import DataIndependentFailure
from topsecret.ledger import Price, Request
from topsecret.service.auth.people import User
from topsecret.service.datasets import NewDataset
from topsecret.service.jobs.answering import failure
from topsecret.service.jobs.job import Asked
from topsecret.service.schema import JOBS
from topsecret.service.settings import Settings
from topsecret.service.state import Parts
from topsecret.service.web.analyst_pages import PAGE

LONG = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch" * 3
ITEMS = [
    LONG,
    "שוק הכרמל (תל אביב)",
    "سوق، 12 شارع الحمراء!",
    "<b>Bread & butter</b>",
    "👪 café",
]
RIGHT_TO_LEFT = "المدينة"
NAME = LONG[:40].lower()
"""As long as the name of an account or of a saved question may be."""


CHOSEN_BY = ("a", "b", "c", "d", "e", "f")


def with_six_filters(server: Server) -> None:
    """A dataset of ann's whose rows may be chosen by six columns."""
    files = server.folder / "files"
    rows = [f"u{person},p,1,1,1,1,1,0" for person in range(1000)]
    text = "\n".join([f"user,place,{','.join(CHOSEN_BY)}", *rows]) + "\n"
    (files / "six.csv").write_text(text, encoding="utf-8")
    parts = Parts(Settings(home=server.folder, files=(files,), tick=0.01))
    filters = dict.fromkeys(CHOSEN_BY, "text")
    new = NewDataset("six", "Six", "six.csv", "user", ("place",), None, 4.0, 1e-5, filters=filters)
    parts.datasets.register(new)
    parts.datasets.allow("six", "ann", {"epsilon": 4.0})
    parts.close()


def in_every_state(server: Server) -> dict[str, str]:
    """Questions of ann's about the longest names, one in each state."""
    files = server.folder / "files"
    rows = [f"user,{LONG[:150]},{RIGHT_TO_LEFT}"]
    for rank, item in enumerate([*ITEMS, *(f"Place {number}" for number in range(95))]):
        rows += [f'u{rank}-{n},"{item}",{n % 2}' for n in range(450 - 3 * rank)]
    (files / "names.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    parts = Parts(Settings(home=server.folder, files=(files,), tick=0.01))
    columns, title = (LONG[:150], RIGHT_TO_LEFT), f"{RIGHT_TO_LEFT} (2026): {LONG}"[:100]
    filters = {RIGHT_TO_LEFT: "text"}
    new = NewDataset("names", title, "names.csv", "user", columns, None, 9.0, 1e-5, filters=filters)
    parts.datasets.register(new)
    parts.datasets.allow("names", "ann", {"epsilon": 9.0})
    fixed = NewDataset("fixed", title, "names.csv", "user", columns, None, 4.0, 1e-5, 5, 20)
    parts.datasets.register(fixed)
    parts.datasets.allow("fixed", "ann", {"queries": 5, "picks": 20})
    where = ((RIGHT_TO_LEFT, "is", "1"),)
    (living,) = (line["worker"] for line in server.lines() if line["event"] == "started")
    found = {}
    for name, asked in {
        "hundred": Asked(columns[0], 100, 6.0, counts=True),
        "nothing": Asked(columns[0], 3, 0.001, where),
    }.items():
        job, _ = parts.jobs.ask("ann", "names", asked, name, living)
        assert parts.jobs.run(job.id) == "answered"
        found[name] = job.id
    failed = failure(DataIndependentFailure(f"{LONG}.csv cannot be read"), "", 600)
    ends = {
        "working": {"state": "answered", "shown": time.time() + 86400},
        "failed": failed | {"shown": 0.0},
        "in-doubt": {"state": "in-doubt", "shown": 0.0, "message": "Cut short. " + LONG},
    }
    for name, end in ends.items():
        job, _ = parts.jobs.ask("ann", "names", asked, name, living)
        with parts.store.writing() as connection:
            connection.execute(update(JOBS).where(JOBS.c.id == job.id).values(end))
        found[name] = job.id
    with parts.store.writing() as connection:  # a page of the history, and what leads to the next
        failed = connection.execute(select(JOBS).where(JOBS.c.id == found["failed"])).mappings()
        row = dict(failed.one())
        more = [{"id": f"{row['id']}-{n}", "request": f"more-{n}"} for n in range(PAGE)]
        connection.execute(JOBS.insert(), [row | one for one in more])
    price, unit = Price(zcdp(0.0001)), PrivacyUnit(person="user")  # a reservation without an end
    parts.ledger.reserve(Request("names", price, {"asked": "by whom?"}, unit, analyst="ann"))
    named, cost = ("ann", "every-monday-" + LONG[:27].lower(), "names"), {"rho": Fraction(1, 10**6)}
    at = [datetime.now(UTC) + timedelta(days=number) for number in (1, 2)]
    parts.schedules.begin(
        *named, Asked(columns[0], 3, 0.001, where), cost=cost, times=at, every="day"
    )
    asked = Asked(columns[0], 3, 0.001, ((RIGHT_TO_LEFT, "is", LONG),))
    parts.saved.save(User("ann", "analyst"), NAME, "names", asked)
    (files / f"{LONG[:200]}.csv").write_text("\n".join(rows[:2]) + "\n", encoding="utf-8")
    parts.accounts.add(NAME, "analyst", PASSWORD)
    for name in ("ann", NAME):
        parts.accounts.new_key(name, LONG[:60], "read", 30)
    parts.audit.note(NAME, "register", {"title": title, "columns": columns})
    parts.ledger.close()
    parts.store.close()
    return found
