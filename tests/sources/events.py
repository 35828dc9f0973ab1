"""Event files for tests, in every format."""

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import duckdb

from topsecret.sources.file_form import File

Row = tuple[str | None, str | None]

SUFFIXES = (
    ".csv",
    ".tsv",
    ".jsonl",
    ".json",
    ".ndjson",
    ".parquet",
    ".csv.gz",
    ".tsv.gz",
    ".jsonl.gz",
    ".CSV",
)


def of_several_lines(path: Path) -> File:
    """The file, in which values may go on in the next line; some formats need no such word."""
    named = path.name.lower().removesuffix(".gz")
    return File(path, multiline=named.endswith((".csv", ".tsv")))


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows of (user, place) in the format that the suffix names."""
    suffix = path.name.lower().removesuffix(".gz").rsplit(".", 1)[1]
    if suffix == "parquet":
        with duckdb.connect() as engine:
            engine.execute('CREATE TABLE t ("user" VARCHAR, place VARCHAR)')
            if rows:
                engine.executemany("INSERT INTO t VALUES (?, ?)", [list(row) for row in rows])
            engine.execute(f"COPY t TO '{path}' (FORMAT parquet)")
        return path
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        if suffix in {"csv", "tsv"}:
            table = csv.writer(file, delimiter="\t" if suffix == "tsv" else ",")
            table.writerow(["user", "place"])
            table.writerows([[value or "" for value in row] for row in rows])
        else:
            for user, place in rows:
                file.write(json.dumps({"user": user, "place": place}) + "\n")
    return path
