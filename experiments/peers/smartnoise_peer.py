"""The question in SmartNoise SQL."""

from protocol import LONGEST, serve

# user code
import pandas as pd
import snsql

QUERY = (
    "SELECT venue, COUNT(DISTINCT user) AS persons FROM city.events "
    f"GROUP BY venue ORDER BY persons DESC LIMIT {LONGEST}"
)


def answer(path, epsilon, delta, cap):
    """The leading venues by noisy counts."""
    frame = pd.read_csv(path, dtype=str)
    columns = {
        "max_ids": cap,
        "user": {"type": "string", "private_id": True},
        "venue": {"type": "string"},
    }
    # A count and the threshold cost 1.5 delta in all, by its own get_privacy_cost.
    privacy = snsql.Privacy(epsilon=epsilon, delta=delta / 1.5)
    reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"city": {"events": columns}}})
    return [row[0] for row in reader.execute(QUERY)[1:]]


# end

serve(answer)
