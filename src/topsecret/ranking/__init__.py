"""Private rankings from pairwise comparisons (extra ``ranking``).

>>> wins = [[0, 40, 45], [10, 0, 30], [5, 20, 0]]
>>> games = Comparisons.from_matrix(wins, items=["ada", "bob", "eve"], schedule="public")
>>> strength(games, epsilon=5).items[0]
'ada'
"""

from topsecret.ranking.comparisons import Comparisons
from topsecret.ranking.ranking import Ranking, counting, spectral
from topsecret.ranking.sensitivity import PromisedMixing
from topsecret.ranking.strength import Chance, StrengthRanking, strength

__all__ = [
    "Chance",
    "Comparisons",
    "PromisedMixing",
    "Ranking",
    "StrengthRanking",
    "counting",
    "spectral",
    "strength",
]
