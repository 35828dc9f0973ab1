"""The question in OpenDP: noisy counts of all venues that pass a threshold, then the largest."""

from protocol import LONGEST, serve

# user code
import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def answer(path, epsilon, delta, cap):
    """The leading venues by noisy counts."""
    context = dp.Context.compositor(
        data=pl.scan_csv(path),
        privacy_unit=dp.unit_of(contributions=1, identifier="user"),
        privacy_loss=dp.loss_of(epsilon=epsilon, delta=delta),
        split_evenly_over=1,
    )
    counts = (
        context.query()
        .truncate_per_group(1, by=["venue"])
        .truncate_num_groups(cap, by=["venue"], keep="first")  # "sample" fails in 0.16.0
        .group_by("venue")
        .agg(dp.len())
        .release()
        .collect()
    )
    return counts.sort("len", descending=True)["venue"].head(LONGEST).to_list()


# end

serve(answer)
