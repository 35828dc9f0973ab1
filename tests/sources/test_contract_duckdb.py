"""DuckDB keeps the contract, whatever form the events come in."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from contract import Contract, Row
from events import write

from topsecret.sources import Source
from topsecret.sources.duckdb import FileSource


class Files(Contract):
    suffix: str

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.numbered = itertools.count()

    def source(self, rows: Sequence[Row]) -> Source:
        return FileSource(write(self.folder / f"{next(self.numbered)}{self.suffix}", rows))

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        path = self.folder / f"{next(self.numbered)}.parquet"
        with duckdb.connect() as engine:
            engine.execute('CREATE TABLE t ("user" BIGINT, place INTEGER)')
            engine.executemany("INSERT INTO t VALUES (?, ?)", [list(row) for row in rows])
            engine.execute(f"COPY t TO '{path}' (FORMAT parquet)")
        return FileSource(path)


class TestCsv(Files):
    suffix = ".csv"


class TestJsonLines(Files):
    suffix = ".jsonl"


class TestParquet(Files):
    suffix = ".parquet"
