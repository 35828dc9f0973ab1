"""Spark keeps the contract on a cluster whose executors exchange data."""

from collections.abc import Sequence
from typing import Any

import pytest
from contract import RELAXED, Contract, Row, tables, text
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from topsecret.sources import Source
from topsecret.sources.engines.spark import SparkSource

pytestmark = pytest.mark.spark

FEW = settings(RELAXED, max_examples=2)  # a query takes a third of a second


class TestSpark(Contract):
    @pytest.fixture(autouse=True)
    def _session(self, spark: SparkSession) -> None:
        self.spark = spark

    def frame(self, rows: Sequence[Row], schema: str) -> DataFrame:
        # In three slices: rows of one person lie on both executors.
        parallel = self.spark.sparkContext.parallelize(list(rows), 3)
        return self.spark.createDataFrame(parallel, schema)

    def source(self, rows: Sequence[Row]) -> Source:
        return SparkSource(self.frame(rows, "user string, place string"))

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        return SparkSource(self.frame(rows, "user bigint, place int"))

    @pytest.mark.parametrize("cap", [None, 1, 3])
    @FEW
    @given(rows=tables)
    def test_agrees_with_counting_by_hand(self, cap: int | None, rows: list[Row]) -> None:
        test: Any = Contract.test_agrees_with_counting_by_hand
        test.hypothesis.inner_test(self, cap, rows)

    @pytest.mark.parametrize("cap", [None, 1, 3])
    @FEW
    @given(rows=tables, new=st.lists(text, min_size=1, max_size=8), place=st.integers(0, 25))
    def test_neighbours_stay_neighbours(
        self, cap: int | None, rows: list[Row], new: list[str], place: int
    ) -> None:
        test: Any = Contract.test_neighbours_stay_neighbours
        test.hypothesis.inner_test(self, cap, rows, new, place)
