"""Differentially private top-k for the data people already have.

>>> from topsecret import NOTHING, Histogram, plan, top_k, top_k_by
"""

from topsecret.by_group import top_k_by
from topsecret.histogram import Histogram
from topsecret.planning import Zipf, plan
from topsecret.query import Column, Expression, top_k
from topsecret.selection import NOTHING

__version__ = "0.1.0.dev0"

__all__ = [
    "NOTHING",
    "Column",
    "Expression",
    "Histogram",
    "Zipf",
    "__version__",
    "plan",
    "top_k",
    "top_k_by",
]
