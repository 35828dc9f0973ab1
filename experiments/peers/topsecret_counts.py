"""The question in topsecret, with noisy counts: EVENTS.csv EPSILON DELTA K RUNS."""

from protocol import serve

# user code
from topsecret import top_k


def answer(path, epsilon, delta, k):
    """The leading venues; their counts are in the release as well."""
    asked = {"k": k, "epsilon": epsilon, "delta": delta, "counts": True}
    return top_k(path, item="venue", person="user", **asked).items


# end

serve(answer)
