"""Differentially private top-k for the data people already have.

>>> from topsecret import NOTHING, Histogram, plan, top_k, top_k_by
"""

from topsecret.client import connect
from topsecret.counts.histogram import Histogram
from topsecret.mechanisms.selection import NOTHING
from topsecret.planning import Zipf, plan
from topsecret.questions.schedule import Schedule
from topsecret.questions.series import Series
from topsecret.questions.sql import sql
from topsecret.questions.top_k import Column, Expression, Sum, top_k, top_k_by
from topsecret.sources.file_form import File

__version__ = "0.2.0"

__all__ = [
    "NOTHING",
    "Column",
    "Expression",
    "File",
    "Histogram",
    "Schedule",
    "Series",
    "Sum",
    "Zipf",
    "__version__",
    "connect",
    "plan",
    "sql",
    "top_k",
    "top_k_by",
]
