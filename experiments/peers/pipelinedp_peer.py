"""The question in PipelineDP: private partitions with their noisy number of persons."""

from protocol import LONGEST, serve

# user code
import csv

import pipeline_dp as pdp


def answer(path, epsilon, delta, cap):
    """The leading venues by noisy counts."""
    with open(path) as file:
        rows = [(row["user"], row["venue"]) for row in csv.DictReader(file)]
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    parameters = pdp.AggregateParams(
        metrics=[pdp.Metrics.PRIVACY_ID_COUNT],
        noise_kind=pdp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=cap,
        max_contributions_per_partition=1,
    )
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: 1,
    )
    result = engine.aggregate(rows, parameters, extractors)
    accountant.compute_budgets()
    counts = sorted(result, key=lambda pair: -pair[1].privacy_id_count)
    return [venue for venue, _ in counts[:LONGEST]]


# end

serve(answer)
