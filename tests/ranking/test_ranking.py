"""Rankings: what is protected, what is public, and words for odd schedules."""

import numpy as np
import pytest

from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter, SourceError
from topsecret.mechanisms import LaplaceRanking
from topsecret.ranking import Comparisons, PromisedMixing, counting, spectral
from topsecret.results.receipt import UNRECORDED
from topsecret.verify import Neighbourhood, check_privacy, check_sampler

WINS = np.array([[0, 400, 450], [100, 0, 350], [50, 150, 0]])
GAMES = Comparisons.from_matrix(WINS, items=["ada", "bob", "eve"], schedule="public")


@pytest.mark.parametrize("case", LaplaceRanking.verification_cases())
def test_counting_keeps_its_claim_on_all_neighbours(case: LaplaceRanking) -> None:
    assert check_privacy(case, items=3, max_count=4, tall=8).passed


def test_counting_where_one_person_may_have_every_item_is_rejected() -> None:
    for case in (LaplaceRanking(None, 1.4), LaplaceRanking(2, 1.0)):
        together = Neighbourhood(adjacency="replace", max_items=3)
        assert not check_privacy(case, items=4, max_count=3, tall=3, neighbourhood=together).passed


def test_half_of_the_noise_is_rejected() -> None:
    class Half(LaplaceRanking):
        @property
        def scale(self):  # type: ignore[no-untyped-def]
            return super().scale / 2

    assert not check_privacy(Half(k=1, epsilon=0.7), items=2, max_count=6, tall=6).passed


def test_the_sampler_draws_the_law() -> None:
    histogram = Histogram.of({"a": 5, "b": 4, "c": 4}, domain=["a", "b", "c"])
    mechanism = LaplaceRanking(k=None, epsilon=1.0)
    assert check_sampler(mechanism, histogram, 8_000, alarm_rate=1e-6).passed


def test_all_ways_to_bring_comparisons_agree() -> None:
    winners, losers = ["ada"] * 3 + ["bob"], ["bob"] * 2 + ["eve"] + ["ada"]
    rows = Comparisons.from_rows(winners, losers, [False, True, False, False], schedule="public")
    codes = Comparisons.from_codes(
        [0, 0, 0, 1],
        [1, 1, 2, 0],
        items=["ada", "bob", "eve"],
        ties=[False, True, False, False],
        schedule="public",
    )
    matrix = Comparisons.from_matrix(
        [[0, 1, 1], [1, 0, 0], [0, 0, 0]],
        items=["ada", "bob", "eve"],
        ties=[[0, 1, 0], [1, 0, 0], [0, 0, 0]],
        schedule="public",
    )
    for games in (rows, codes, matrix):
        assert games.items == ("ada", "bob", "eve")
        assert games.wins.toarray().tolist() == [[0, 1.5, 1], [1.5, 0, 0], [0, 0, 0]]
        assert (games.most_games, games.fewest_meetings, games.comparisons) == (4, 0, 4)
        assert games.half_win_counts().counts_of(["ada", "bob", "eve"]) == [5, 3, 0]


def test_the_schedule_does_not_depend_on_who_won() -> None:
    there = Comparisons.from_rows(["a", "b"], ["b", "c"], schedule="public")
    back = Comparisons.from_rows(["b", "c"], ["a", "b"], [True, False], schedule="public")
    assert there.described() == back.described()
    assert (there.games != back.games).nnz == 0
    assert np.array_equal(there.wins.indices, back.wins.indices)


def test_self_comparisons_say_nothing() -> None:
    games = Comparisons.from_rows(["a", "a"], ["a", "b"], schedule="public")
    assert games.comparisons == 1
    assert Comparisons.from_matrix([[7, 1], [0, 3]], schedule="public").comparisons == 1


def test_a_clear_contest_is_ranked_by_both_methods() -> None:
    assert counting(GAMES, epsilon=5).items == ("ada", "bob", "eve")
    assert counting(GAMES, k=1, epsilon=5).items == ("ada",)
    ranking = spectral(GAMES, k=2, epsilon=50)
    assert ranking.items == ("ada", "bob")
    assert ranking.epsilon == 50
    assert spectral(GAMES, k=2, epsilon=50, answer="set").items == ("ada", "bob")
    with_delta = spectral(GAMES, k=2, epsilon=50, delta=1e-6, teleport=0.2)
    assert with_delta.items == ("ada", "bob")
    assert with_delta.epsilon <= 50
    assert with_delta.delta == 1e-6


def test_the_receipt_says_what_is_public_and_what_was_assumed() -> None:
    receipt = dict(counting(GAMES, epsilon=1).receipt)
    assert receipt["Public"] == (
        "who met whom and how often, as declared by the caller: "
        "3 items, 1,500 comparisons, every pair met at least 500 times."
    )
    assert receipt["Protected"] == (
        "who won any one comparison. Somebody who decided several, say b, is protected less: at b "
        "times epsilon."
    )
    assert receipt["Guarantee"].startswith("epsilon = 1, without a delta: had one comparison ended")
    assert receipt["Sharing"] == (
        "the guarantee holds whoever sees the ranking and this receipt, and whatever they do with "
        "them. Whether to publish is the data owner's decision, by the epsilon and delta of all "
        "published answers about the same people, and of all that helped to choose them."
    )
    assert receipt["Not covered"].endswith("other answers about the same comparisons add.")
    assert receipt["Budget"] == (
        f"{UNRECORDED} For rankings, open it with --person 'each comparison' --adjacency outcomes."
    )
    failing = dict(spectral(GAMES, k=2, epsilon=1, delta=1e-6, teleport=0.3).receipt)
    grown = "at b times epsilon and delta times 1 + e^epsilon + … + e^((b-1) epsilon)."
    assert failing["Protected"].endswith(grown)
    assert "times as likely, plus delta." in failing["Guarantee"]
    assert "ASSUMED" not in receipt
    promise = spectral(GAMES, k=1, epsilon=1, promise=PromisedMixing(0.9))
    assert dict(promise.receipt)["ASSUMED"].startswith("the caller promised tau_1 <= 0.9")
    assert "Receipt" in str(promise)
    assert promise.to_dict()["assumption"] == promise.assumption


def test_the_sensitivity_covers_the_solver() -> None:
    parameters = spectral(GAMES, k=1, epsilon=1).parameters
    assert parameters["sensitivity"] > 1 / 500
    assert parameters["of which solver"] < 1e-6 / 500 * 4


def test_parts_that_never_met_are_told_in_words() -> None:
    games = Comparisons.from_rows(["a", "c"], ["b", "d"], schedule="public")
    assert games.described().endswith(
        "the schedule falls into 2 parts that never met, and places across parts mean little"
    )
    assert len(spectral(games, k=4, epsilon=1, teleport=0.3).items) == 4
    with pytest.raises(InvalidParameter, match="falls into 2 parts that never met, so that no"):
        spectral(games, k=1, epsilon=1, promise=PromisedMixing(0.5))
    with pytest.raises(InvalidParameter, match="some pair of items never met"):
        spectral(games, k=1, epsilon=1)


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidParameter, match="schedule='secret' must be 'public'"):
        Comparisons.from_rows(["a"], ["b"], schedule="secret")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="k=4 must be at most the number of items=3"):
        counting(GAMES, k=4, epsilon=1)
    with pytest.raises(InvalidParameter, match="answer='best' must be 'list' or 'set'"):
        spectral(GAMES, k=1, epsilon=1, answer="best")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"wins has the shape \(1, 2\); it must be square"):
        Comparisons.from_matrix([[1, 2]], schedule="public")
    with pytest.raises(InvalidParameter, match="wins must hold whole numbers"):
        Comparisons.from_matrix([[0.5, 2], [0, 0]], schedule="public")
    with pytest.raises(InvalidParameter, match="places must lie between 0 and 1"):
        Comparisons.from_codes([5], [0], items=["a", "b"], schedule="public")
    with pytest.raises(InvalidParameter, match="teleport needs no promise"):
        spectral(GAMES, k=1, epsilon=1, teleport=0.1, promise=PromisedMixing(0.5))


def test_a_file_is_read_as_text_and_ties_by_their_words(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from topsecret.questions.rank_file import rank_file
    from topsecret.sources.engines.duckdb import FileSource
    from topsecret.sources.matches import MatchQuery, read_matches

    path = tmp_path / "m.csv"
    path.write_text('w,l,t\n01,1,\n01,1,Draw\n1,01,no\n"x, y",1,0\n,1,0\n01,1,\n')
    read = read_matches(FileSource(path), MatchQuery("w", "l", "t"))
    assert read.items == ["01", "1", "x, y"]
    rows = zip(read.winners, read.losers, read.ties, read.counts, strict=True)
    found = sorted(tuple(map(int, row)) for row in rows)
    assert found == [(0, 1, 0, 2), (0, 1, 1, 1), (1, 0, 0, 1), (2, 1, 0, 1)]
    assert set(rank_file(path, winner="w", loser="l", epsilon=1).items) == set(read.items)
    with pytest.raises(SourceError, match="has no column 'who'"):
        rank_file(path, winner="who", loser="l", epsilon=1)
    with pytest.raises(InvalidParameter, match="spectral needs a k"):
        rank_file(path, winner="w", loser="l", epsilon=1, method="spectral")
    with pytest.raises(InvalidParameter, match="counting has no delta"):
        rank_file(path, winner="w", loser="l", epsilon=1, delta=1e-6, method="counting")
    with pytest.raises(InvalidParameter, match="strength has no teleport"):
        rank_file(path, winner="w", loser="l", epsilon=1, teleport=0.1)
    with pytest.raises(InvalidParameter, match="needs method='strength'"):
        rank_file(
            path, winner="w", loser="l", epsilon=1, method="counting", person="t",
            comparisons_per_person=2,
        )  # fmt: skip


def test_parquet_and_json_lines_are_read_too(tmp_path) -> None:  # type: ignore[no-untyped-def]
    import duckdb

    from topsecret.questions.rank_file import rank_file

    parquet = tmp_path / "m.parquet"
    duckdb.sql(f"COPY (SELECT 'a' AS w, 7 AS l UNION ALL SELECT 'b', 7) TO '{parquet}'")
    lines = tmp_path / "m.jsonl"
    lines.write_text('{"w": "a", "l": "7"}\n{"w": "b", "l": "7"}\n')
    for path in (parquet, lines):
        assert set(rank_file(path, winner="w", loser="l", epsilon=1).items) == {"a", "b", "7"}
