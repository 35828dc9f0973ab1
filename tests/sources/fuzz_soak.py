"""``make soak``: 10,000 pairs of neighbours in each world (Spark 500), with a fresh seed each time.

``TOPSECRET_SEED`` repeats a run that found something.
"""

import os
import secrets
from pathlib import Path
from typing import Any

import fuzz_worlds as worlds
import pytest
from neighbours_fuzz import Hunt

PAIRS = int(os.environ.get("TOPSECRET_PAIRS", "10000"))
SEED = int(os.environ.get("TOPSECRET_SEED") or secrets.randbits(32))


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_files(tmp_path: Path, suffix: str) -> None:
    assert Hunt(worlds.Files(tmp_path, suffix), SEED, suffix == "parquet").run(PAIRS) >= PAIRS


def test_duckdb() -> None:
    done = 0
    while done < PAIRS:  # a fresh connection now and then: a catalogue of thousands is slow
        done += Hunt(worlds.DuckTables(), SEED + done).run(min(200, PAIRS))


def test_frames() -> None:
    assert Hunt(worlds.Frames(), SEED).run(PAIRS) >= PAIRS


def test_sqlite(tmp_path: Path) -> None:
    done = 0
    while done < PAIRS:
        world = worlds.sqlite(tmp_path / f"{done}.db")
        done += Hunt(world, SEED + done).run(min(200, PAIRS))
        world._engines[0].dispose()


def test_postgresql(postgres_url: str) -> None:
    world = worlds.postgres(postgres_url)
    assert Hunt(world, SEED).run(PAIRS) >= PAIRS
    for engine in world._engines:
        engine.dispose()


@pytest.mark.spark
def test_spark(spark: Any) -> None:
    pairs = min(500, PAIRS)
    assert Hunt(worlds.SparkFrames(spark), SEED).run(pairs) >= pairs
