"""The question in OpenDP, about rows that were cut down to the cap before: EVENTS.csv EPSILON …"""

from protocol import LONGEST, serve

# user code
import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def answer(path, epsilon, delta, cap):
    """The leading venues by noisy counts."""
    context = dp.Context.compositor(
        data=pl.scan_csv(path),
        privacy_unit=dp.unit_of(contributions=cap),
        privacy_loss=dp.loss_of(epsilon=epsilon, delta=delta),
        split_evenly_over=1,
    )
    counts = context.query().group_by("venue").agg(dp.len()).release().collect()
    return counts.sort("len", descending=True)["venue"].head(LONGEST).to_list()


# end

serve(answer)
