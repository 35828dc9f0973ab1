"""``topsecret service``: for whoever runs one: back in for an owner, who did what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topsecret.cli.app import app
from topsecret.errors import InvalidParameter

if TYPE_CHECKING:
    from topsecret.ledger.store import Store
    from topsecret.service.settings import Settings

service = typer.Typer(
    no_args_is_help=True, help="Read a service's audit trail, or let a locked-out owner in."
)
app.add_typer(service, name="service")

HomeOption = Annotated[
    Path | None,
    typer.Option(
        help="The folder that topsecret serve was given.",
        metavar="FOLDER",
        envvar="TOPSECRET_SERVE_HOME",
        show_default="one in your data directory",
    ),
]
DatabaseOption = Annotated[
    str,
    typer.Option(
        help="The database that topsecret serve was given.",
        envvar="TOPSECRET_SERVE_DATABASE",
        show_default="SQLite",
    ),
]


@service.callback()
def _service() -> None:
    """Read a service's audit trail, or let a locked-out owner in."""


def _settings(home: Path | None, database: str) -> Settings:
    from topsecret.service.settings import Settings, default_home

    return Settings(home=(home or default_home()).absolute(), database=database)


@contextmanager
def _opened(settings: Settings) -> Iterator[Store]:
    """The records of a service that is there."""
    from topsecret.ledger.store import Store
    from topsecret.service import schema

    if not settings.database and not Path(settings.place).exists():
        raise InvalidParameter(f"there is no service in {settings.home}; name its --home")
    if settings.database and "://" not in settings.database and not Path(settings.place).exists():
        raise InvalidParameter(f"there is no file {settings.place}; name an existing --database")
    store = Store(settings.place)
    try:
        schema.create(store)
        yield store
    finally:
        store.close()


@service.command("reset-owner")
def reset_owner(
    name: Annotated[str, typer.Argument(help="The owner, where there are several.")] = "",
    home: HomeOption = None,
    database: DatabaseOption = "",
) -> None:
    """Give an owner a new password, printed this once; their sessions and keys end.

    For whoever runs the service. It may go on serving meanwhile.

    topsecret service reset-owner --home /srv/topsecret
    """
    from topsecret.service.audit import Trail
    from topsecret.service.auth.accounts import Accounts
    from topsecret.service.auth.credentials import new_password
    from topsecret.service.auth.recognised import Recognised

    settings = _settings(home, database)
    with _opened(settings) as store:
        # The file belongs to the service: where it is not yet, nothing is served from here.
        file = settings.mark_file
        accounts = Accounts(store, Recognised(file if file.exists() else None))
        owners = accounts.owners()
        if not owners:
            raise InvalidParameter("this service has no owner; topsecret serve prints a link")
        if name not in owners and (name or len(owners) > 1):
            raise InvalidParameter(f"name one of the owners: {', '.join(owners)}")
        password = new_password()
        Trail(store).note("operator", "reset owner", {"name": name or owners[0]})
        accounts.set_password(name or owners[0], password)
    typer.echo(f"log in as {name or owners[0]} with {password}")


@service.command()
def audit(home: HomeOption = None, database: DatabaseOption = "") -> None:
    """Print who did what, one JSON object per line, and verify the chain of entries.

    The last line's hash, kept elsewhere, tells whether the trail was rewritten since.

    topsecret service audit --home /srv/topsecret
    """
    from topsecret.service.audit import Trail, faults, shown

    with _opened(_settings(home, database)) as store:
        trail = Trail(store)
        for entry in trail.all():
            typer.echo(json.dumps(shown(entry)))
        found = list(faults(trail.all()))
    for fault in found:
        typer.echo(f"FAULT: {fault}", err=True)
    if found:
        raise typer.Exit(1)
