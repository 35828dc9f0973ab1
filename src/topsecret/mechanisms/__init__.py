"""The mechanisms: each a pure function of a histogram and random bits, with its proof."""

from topsecret.mechanisms.gumbel import GumbelTopK
from topsecret.mechanisms.limited_domain import LimitedDomain
from topsecret.mechanisms.mechanism import Mechanism

__all__ = ["GumbelTopK", "LimitedDomain", "Mechanism"]
