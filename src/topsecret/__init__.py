"""Differentially private top-k for the data people already have.

>>> from topsecret import NOTHING, Histogram, top_k
"""

from topsecret.histogram import Histogram
from topsecret.query import top_k
from topsecret.selection import NOTHING

__version__ = "0.1.0.dev0"

__all__ = ["NOTHING", "Histogram", "__version__", "top_k"]
