"""``make soak``: 10,000 pairs of neighbours in each world (Spark 500), with a fresh seed each time.

Each says how many pairs it checked, all of them answered, and the seed; ``TOPSECRET_SEED`` repeats
a run that found something.
"""

import os
import secrets
import sys
from pathlib import Path
from typing import Any

import fuzz_worlds as worlds
import pytest
from neighbours_fuzz import Hunt, World

PAIRS = int(os.environ.get("TOPSECRET_PAIRS", "10000"))
SEED = int(os.environ.get("TOPSECRET_SEED") or secrets.randbits(32))


def say(line: str) -> None:
    sys.stderr.write(line + "\n")


def hunt(world: World, pairs: int, slow_count: bool = True) -> None:
    say(f"{world.name}: seed {SEED}")
    done = Hunt(world, SEED, slow_count).run(pairs)
    say(f"{world.name}: {done} pairs, all answered, seed {SEED}")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_files(tmp_path: Path, suffix: str) -> None:
    # All columns of text files are text: only parquet is counted by hand.
    hunt(worlds.Files(tmp_path, suffix), PAIRS, suffix == "parquet")


def test_duckdb() -> None:
    hunt(worlds.DuckTables(), PAIRS)


def test_frames() -> None:
    hunt(worlds.Frames(), PAIRS)


def test_sqlite(tmp_path: Path) -> None:
    world = worlds.sqlite(tmp_path / "s.db")
    hunt(world, PAIRS)
    world._engines[0].dispose()


def test_postgresql(postgres_url: str) -> None:
    world = worlds.postgres(postgres_url)
    hunt(world, PAIRS)
    for engine in world._engines:
        engine.dispose()


@pytest.mark.spark
def test_spark(spark: Any) -> None:
    hunt(worlds.SparkFrames(spark), min(500, PAIRS))
