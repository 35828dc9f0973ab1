"""``topsecret service reset-owner``: back in for an owner who is locked out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topsecret.cli.app import app
from topsecret.errors import InvalidParameter

service = typer.Typer(no_args_is_help=True, help="Look after a service.")
app.add_typer(service, name="service")


@service.callback()
def _service() -> None:
    """Look after a service."""


@service.command("reset-owner")
def reset_owner(
    name: Annotated[str, typer.Argument(help="The owner, where there are several.")] = "",
    home: Annotated[
        Path | None,
        typer.Option(
            help="The folder that topsecret serve was given.",
            metavar="FOLDER",
            envvar="TOPSECRET_SERVE_HOME",
            show_default="one in your data directory",
        ),
    ] = None,
    database: Annotated[
        str,
        typer.Option(
            help="The database that topsecret serve was given.",
            envvar="TOPSECRET_SERVE_DATABASE",
            show_default="SQLite",
        ),
    ] = "",
) -> None:
    """Give an owner a new password, printed this once; their sessions and keys end.

    For whoever runs the service. It may go on serving meanwhile.

    topsecret service reset-owner --home /srv/topsecret
    """
    from topsecret.ledger.store import Store
    from topsecret.service import schema
    from topsecret.service.auth.accounts import Accounts
    from topsecret.service.auth.credentials import new_password
    from topsecret.service.settings import Settings, default_home

    settings = Settings(home=(home or default_home()).absolute(), database=database)
    if not database and not Path(settings.place).exists():
        raise InvalidParameter(f"there is no service in {settings.home}; name its --home")
    store = Store(settings.place)
    try:
        schema.create(store)
        accounts = Accounts(store)
        owners = accounts.owners()
        if not owners:
            raise InvalidParameter("this service has no owner; topsecret serve prints a link")
        if name not in owners and (name or len(owners) > 1):
            raise InvalidParameter(f"name one of the owners: {', '.join(owners)}")
        password = new_password()
        accounts.set_password(name or owners[0], password)
    finally:
        store.close()
    typer.echo(f"log in as {name or owners[0]} with {password}")
