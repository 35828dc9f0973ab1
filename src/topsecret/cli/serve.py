"""``topsecret serve``: private top lists for a team, in a browser and over HTTP."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from topsecret.cli.app import app
from topsecret.errors import InvalidParameter


def _from_file(context: typer.Context, path: Path | None) -> Path | None:
    """The options that a file states, where neither the command line nor the environment does."""
    if path is None:
        return None
    try:
        options = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        # The file may hold a password: nothing of it is repeated.
        raise InvalidParameter(
            f"--config {path} cannot be read as TOML; check that it exists and its syntax"
        ) from None
    known = {parameter.name for parameter in context.command.params} - {"config", "demo"}
    foreign = sorted(set(options) - known)
    if foreign:
        raise InvalidParameter(
            f"--config {path} has {foreign[0]!r}, which is no option; there are "
            f"{', '.join(sorted(name for name in known if name))}"
        )
    context.default_map = {**(context.default_map or {}), **options}
    return path


@app.command(context_settings={"auto_envvar_prefix": "TOPSECRET_SERVE"})
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    home: Annotated[
        Path | None,
        typer.Option(
            help="A private folder for ledger and accounts.",
            metavar="FOLDER",
            show_default="one in your data directory",
        ),
    ] = None,
    database: Annotated[
        str, typer.Option(help="postgresql://… for ledger and accounts.", show_default="SQLite")
    ] = "",
    witness: Annotated[
        Path | None,
        typer.Option(
            help="A file, kept apart from the database and its backups, that refuses an older one.",
            metavar="FILE",
            show_default="witness.json in the home folder",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(help="A folder whose files may be registered; repeatable.", metavar="FOLDER"),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="A database whose tables may be registered; repeatable. Where the address holds a "
            "password, use TOPSECRET_SOURCES.",
            metavar="NAME=URL",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that share the ledger.", min=1)] = 1,
    tick: Annotated[
        float, typer.Option(help="Fresh answers are shown at multiples of this many seconds.")
    ] = 1.0,
    limit: Annotated[
        float, typer.Option(help="Seconds that counting one question may take.")
    ] = 600.0,
    https: Annotated[
        bool, typer.Option("--https", help="Browsers come by HTTPS, through a proxy.")
    ] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(
            help="Speak HTTPS with this certificate and those that lead to its issuer (PEM).",
            metavar="FILE",
        ),
    ] = None,
    certificate_key: Annotated[
        Path | None, typer.Option(help="The certificate's private key (PEM).", metavar="FILE")
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="The path under which a proxy serves it.", metavar="/PATH")
    ] = "",
    openid_issuer: Annotated[
        str, typer.Option(help="A provider of OpenID Connect for sign-in.", metavar="URL")
    ] = "",
    openid_client: Annotated[
        str, typer.Option(help="What the provider calls this service.", metavar="ID")
    ] = "",
    openid_secret: Annotated[
        str,
        typer.Option(
            help="The client's secret, better in TOPSECRET_SERVE_OPENID_SECRET.", metavar="SECRET"
        ),
    ] = "",
    openid_claim: Annotated[
        str, typer.Option(help="The claim that names people: unique, and not theirs to change.")
    ] = "preferred_username",
    keep_days: Annotated[
        int | None,
        typer.Option(
            help="Forget questions that ended so many days ago; the ledger keeps its entries.",
            min=1,
            show_default="keep all",
        ),
    ] = None,
    notify: Annotated[
        str,
        typer.Option(
            help="A program, with arguments, that is told of scheduled answers by JSON.",
            metavar="COMMAND",
        ),
    ] = "",
    config: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file with any of these options by name: port = 8000.",
            metavar="FILE",
            callback=_from_file,
            is_eager=True,
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Try it out with made-up data in ./demo.")
    ] = False,
) -> None:
    """Serve private top lists to a team, with accounts, budgets and a page to ask from.

    Every option may also come by the environment, --tick as TOPSECRET_SERVE_TICK, or from a file
    that --config names. The command line comes first, then the environment, then the file.

    topsecret serve --files /srv/events

    topsecret serve --source shop=postgresql://reader@db.example.org/shop

    topsecret serve --demo
    """
    from topsecret.service.databases import ENVIRONMENT, named
    from topsecret.service.notices import words_of
    from topsecret.service.serve import address, bound, certified, prepare, run, share_memory
    from topsecret.service.settings import Settings, default_home

    for folder in files or ():
        if not folder.is_dir():
            raise InvalidParameter(f"--files {folder} is not a folder; name an existing one")
    own = certified(certificate, certificate_key)
    if notify:
        words_of(notify)
    settings = Settings(
        home=(home or default_home()).absolute(),
        database=database,
        witness=None if witness is None else witness.absolute(),
        files=tuple(folder.absolute() for folder in files or ()),
        sources=named(source or (), os.environ.get(ENVIRONMENT, "")),
        tick=tick,
        limit=limit,
        https=https or own is not None,
        prefix=prefix.rstrip("/"),
        openid_issuer=openid_issuer,
        openid_client=openid_client,
        openid_secret=openid_secret,
        openid_claim=openid_claim,
        keep_days=keep_days,
        notify=notify,
    )
    share_memory(workers * settings.engines)
    with bound(host, port) as listening:
        base = address(host, listening, settings.https)
        if demo:
            from topsecret.service.demo import trial

            settings = trial(settings, Path("demo"), typer.echo)
        else:
            prepare(settings, base, typer.echo)
        typer.echo(f"topsecret serves {base}{settings.prefix} (Ctrl-C ends it)")
        run(settings, listening, workers, own)
