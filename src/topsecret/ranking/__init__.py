"""Private rankings from pairwise comparisons (extra ``ranking``).

>>> wins = [[0, 40, 45], [10, 0, 30], [5, 20, 0]]
>>> games = Comparisons.from_matrix(wins, items=["ada", "bob", "eve"], schedule="public")
>>> print(spectral(games, k=1, epsilon=1000).items)
('ada',)
"""

from topsecret.ranking.comparisons import Comparisons
from topsecret.ranking.ranking import Ranking, counting, spectral
from topsecret.ranking.sensitivity import PromisedMixing

__all__ = ["Comparisons", "PromisedMixing", "Ranking", "counting", "spectral"]
