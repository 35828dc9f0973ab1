"""The question in Tumult Analytics: private groups with half of the budget, then their counts."""

from protocol import LONGEST, serve

# user code
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    QueryBuilder,
    Session,
)

spark = SparkSession.builder.master("local[2]").getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def answer(path, epsilon, delta, cap):
    """The leading venues by noisy counts."""
    session = Session.from_dataframe(
        privacy_budget=ApproxDPBudget(epsilon, delta),
        source_id="events",
        dataframe=spark.read.csv(path, header=True),
        protected_change=AddRowsWithID("user"),
    )
    capped = (
        QueryBuilder("events")
        .enforce(MaxGroupsPerID("venue", cap))
        .enforce(MaxRowsPerGroupPerID("venue", 1))
    )
    groups = session.evaluate(capped.get_groups(["venue"]), ApproxDPBudget(epsilon / 2, delta))
    keys = KeySet.from_dataframe(groups)
    counts = session.evaluate(capped.groupby(keys).count(), ApproxDPBudget(epsilon / 2, 0))
    best = counts.orderBy("count", ascending=False).limit(LONGEST)
    return [row["venue"] for row in best.collect()]


# end

serve(answer)
