"""Rows and sums on Spark."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from measures_contract import Measured, Row
from pyspark.sql import SparkSession

from topsecret.sources import Source
from topsecret.sources.engines.spark import SparkSource

pytestmark = pytest.mark.spark

TYPES = {"integer": "bigint", "decimal": "decimal(38, 10)", "float": "double"}
NUMBERS: dict[str, Any] = {"integer": int, "decimal": Decimal, "float": float}


class TestSpark(Measured):
    if os.environ.get("TOPSECRET_SOAK") != "1":
        kinds = ("decimal", "float")  # whole numbers are decimals without a fraction

    @pytest.fixture(autouse=True)
    def _session(self, spark: SparkSession) -> None:
        self.spark = spark

    def priced(self, rows: Sequence[Row], kind: str) -> Source:
        number = NUMBERS[kind]
        typed = [(u, p, v if v is None else number(v)) for u, p, v in rows]
        schema = f"user string, place string, price {TYPES[kind]}"
        return SparkSource(self.spark.createDataFrame(typed, schema))

    def units_and_caps(self, kind: str) -> list[tuple[float, int | None]]:
        """Each with one kind of numbers or two: DuckDB and PostgreSQL have them all."""
        few, many = super().units_and_caps(kind)
        return [many if kind == "decimal" else few]

    def hostile(self, kind: str) -> list[Any]:
        """All at once: a statement takes a third of a second."""
        return {
            "integer": [2**63 - 1, -(2**63)],
            "decimal": [Decimal(10**27), Decimal(-(10**27))],
            "float": [1.7e308, math.inf, math.nan],
        }[kind]
