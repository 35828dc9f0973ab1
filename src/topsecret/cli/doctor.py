"""``topsecret doctor``: what is installed, what works, and what to install for more."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Callable
from typing import Annotated, Any

import typer

from topsecret.cli.app import app
from topsecret.cli.file_options import (
    DelimiterOption,
    EncodingOption,
    FormatOption,
    HeaderOption,
    MultilineOption,
)

NEEDED = ("duckdb", "numpy", "python-flint", "rich", "sqlglot", "typer")
OPTIONAL = {
    "sqlalchemy": ("sqlalchemy", "databases and the ledger", ".[ledger]"),
    "psycopg": ("psycopg", "PostgreSQL", ".[postgres]"),
    "fastapi": ("fastapi", "the service", ".[service]"),
    "joserfc": ("joserfc", "sign-in by OpenID Connect", ".[openid]"),
    "pyspark": ("pyspark", "Spark", ".[spark]"),
    "matplotlib": ("matplotlib", "plots", ".[plot]"),
    "scikit-learn": ("sklearn", "PATE with scikit-learn", ".[pate]"),
    "scipy": ("scipy", "rankings", ".[ranking]"),
    "opendp": ("opendp", "OpenDP measurements", ".[opendp]"),
    "dp-accounting": ("dp_accounting", "export to dp-accounting", ".[accounting]"),
    "zstandard": ("zstandard", "files packed by zstd", ".[zstd]"),
    "pandas": ("pandas", "pandas data frames", "pandas"),
    "polars": ("polars", "polars data frames", "polars"),
    "pyarrow": ("pyarrow", "pyarrow tables, polars data frames", "pyarrow"),
    "ibis-framework": ("ibis", "ibis tables", "ibis-framework[duckdb]"),
}


@app.command()
def doctor(
    file: Annotated[
        str | None,
        typer.Argument(help="A file that was refused: say which rows break its format. SECRET."),
    ] = None,
    form: FormatOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    header: HeaderOption = None,
    multiline: MultilineOption = False,
) -> None:
    """Check versions, engines and randomness, and say what to install for more.

    With a file, find the rows that break its format. That report quotes rows: it is secret.

    topsecret doctor

    topsecret doctor checkins.csv
    """
    from topsecret import __version__

    if file is not None:
        _examine(file, form, delimiter, encoding, header, multiline)
        return

    typer.echo(f"topsecret {__version__}, Python {platform.python_version()}")
    failed = [name for name in NEEDED if not _needed(name)]
    for name, check in CHECKS.items():
        found = check()
        typer.echo(f"{'ok' if found is None else 'NO':>4}  {name}{f': {found}' if found else ''}")
        failed += [name] if found is not None else []
    typer.echo("Optional ('.[…]' is installed in the checkout):")
    for package, (module, purpose, install) in OPTIONAL.items():
        if importlib.util.find_spec(module) is None:
            typer.echo(f"   –  {package}, for {purpose}: pip install '{install}'")
        else:
            typer.echo(f"  ok  {package} {_version(package)}, for {purpose}")
    if failed:
        typer.echo(f"topsecret: not working: {', '.join(failed)}", err=True)
        raise typer.Exit(1)


def _examine(file: str, *options: Any) -> None:
    from itertools import islice

    from topsecret.cli.file_options import as_file
    from topsecret.sources.examine_file import MOST, SECRET, examine

    typer.echo(SECRET.format(file))
    found = list(islice(examine(as_file(file, *options)), MOST + 1))
    for name, line, what in found[:MOST]:
        typer.echo(f"{name}, line {line}: {what}")
    if len(found) > MOST:
        typer.echo("… and more")
    if found:
        raise typer.Exit(1)
    typer.echo("No fault found.")


def _needed(package: str) -> bool:
    version = _version(package)
    typer.echo(f"{'ok' if version else 'NO':>4}  {package} {version or 'is missing'}")
    return bool(version)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _randomness() -> str | None:
    """The operating system's source answers, and not with the same bytes twice."""
    from topsecret.noise.bits import SystemBits

    bits = SystemBits()
    return None if bits.take(32) != bits.take(32) else "the system repeats its random bytes"


def _counting() -> str | None:
    """DuckDB counts a file and a mechanism answers."""
    import tempfile
    from pathlib import Path

    from topsecret.questions.top_k import top_k

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        path.write_text("user,place\n" + "".join(f"{n},park\n" for n in range(1000)), "utf-8")
        release = top_k(path, item="place", person="user", k=1, epsilon=5)
    return None if release.items == ("park",) else "the test file was not counted as it should be"


CHECKS: dict[str, Callable[[], str | None]] = {
    "randomness of the operating system": _randomness,
    "counting a file with DuckDB": _counting,
}
