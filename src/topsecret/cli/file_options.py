"""The options that say how a file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from topsecret.sources.file_form import File

FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, json-lines or parquet, where no suffix says so."),
]
DelimiterOption = Annotated[
    str | None, typer.Option(help="What separates the fields of a CSV file: ';', '|', tab.")
]
EncodingOption = Annotated[
    str | None, typer.Option(help="How text is written: latin-1, cp1252, utf-16.")
]
HeaderOption = Annotated[
    str | None,
    typer.Option(
        help="The columns of a CSV file without a header line, or the fields of JSON lines.",
        metavar="A,B,…",
    ),
]
MultilineOption = Annotated[
    bool,
    typer.Option(
        "--multiline",
        help="Values of a CSV file may go on in the next line. Only if its writer doubles quotes "
        "inside values (Spark writes backslashes unless told otherwise): an open quote would take "
        "in other people's rows.",
    ),
]


def source_of(source: str, *options: str | bool | None) -> Any:
    """The source as it is named, or a file with what the options say of it."""
    given: Any = options
    return as_file(source, *given) if source == "-" or any(options) else source


def as_file(
    path: str,
    form: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: str | None = None,
    multiline: bool = False,
) -> File:
    """The file with what the options say."""
    from topsecret.sources.file_form import File

    names = None if header is None else [name.strip() for name in header.split(",")]
    said: dict[str, Any] = {"format": form, "delimiter": delimiter, "encoding": encoding}
    return File(path, **said, header=names, multiline=multiline)
