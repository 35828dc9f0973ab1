"""Spark keeps the contract of comparisons."""

from collections.abc import Sequence

import pytest
from matches_contract import MatchContract, Vote
from pyspark.sql import SparkSession

from topsecret.sources.engines.spark import SparkSource
from topsecret.sources.session import Engine

pytestmark = pytest.mark.spark


class TestSpark(MatchContract):
    @pytest.fixture(autouse=True)
    def _session(self, spark: SparkSession) -> None:
        self.spark = spark

    def engine(self, rows: Sequence[Vote]) -> Engine:
        parallel = self.spark.sparkContext.parallelize(list(rows), 3)
        schema = "voter string, winner string, loser string, tie string"
        return SparkSource(self.spark.createDataFrame(parallel, schema))
