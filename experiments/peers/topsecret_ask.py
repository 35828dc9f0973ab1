"""The question in topsecret: EVENTS.csv EPSILON DELTA K RUNS (no cap is needed)."""

from protocol import serve

# user code
from topsecret import top_k


def answer(path, epsilon, delta, k):
    """The leading venues."""
    return top_k(path, item="venue", person="user", k=k, epsilon=epsilon, delta=delta).items


# end

serve(answer)
