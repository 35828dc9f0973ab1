"""Verification that can fail: a mechanism's exact laws against its claim, its draws against them.

>>> from topsecret.mechanisms import GumbelTopK
>>> report = check_privacy(GumbelTopK(k=1, scale=2.0), items=2, max_count=2, tall=2)
>>> report.passed, report.histograms, report.pairs
(True, 12, 36)
"""

from topsecret.verify.neighbours import Neighbourhood
from topsecret.verify.privacy import check_privacy
from topsecret.verify.report import Comparison, PrivacyReport
from topsecret.verify.sampler import SamplerReport, check_sampler

__all__ = [
    "Comparison",
    "Neighbourhood",
    "PrivacyReport",
    "SamplerReport",
    "check_privacy",
    "check_sampler",
]
