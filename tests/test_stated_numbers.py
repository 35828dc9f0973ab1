"""No number in a sentence goes stale: limits and defaults are the code's, results the tables'.

Numbers that are worked out are in test_numbers.py; that no other is left, in test_plain_words.py.
"""

import csv
import inspect
from fractions import Fraction
from pathlib import Path
from statistics import fmean

from pages import ROOT
from pages import UNLINKED as PAGES
from topsecret import plan
from topsecret.accounting import absorbed, gaussian, picks, weak_privacy, zcdp
from topsecret.calibration import counts, private_bound
from topsecret.calibration.question import K_BAR_FACTOR
from topsecret.calibration.rises import names_of_each
from topsecret.counts import weights
from topsecret.mechanisms import GumbelTopK, tested_or_weighted
from topsecret.mechanisms.series_numbers import NAMING, SeriesNumbers
from topsecret.mechanisms.tested_schedule import Constants, default_k_bar
from topsecret.pate import plan_answers
from topsecret.pate.plan import MOST as MOST_PUBLIC_ROWS
from topsecret.planning.shape import Zipf
from topsecret.questions import series_terms
from topsecret.questions.answer import planned
from topsecret.questions.compare_over_time import compare_over_time
from topsecret.questions.periods import Periods
from topsecret.questions.question import Question
from topsecret.questions.schedule_terms import due_periods
from topsecret.service import (
    audit,
    connections,
    filters,
    grouped_by,
    opening,
    saved_questions,
    schedule,
    schedules,
)
from topsecret.service.api import list_answers
from topsecret.service.auth.accounts import MOST_KEYS
from topsecret.service.jobs.release_schedule import Turns
from topsecret.service.preview import LARGEST_K
from topsecret.service.settings import Settings
from topsecret.service.shapes import MOST_ANSWERS
from topsecret.sources import measures
from topsecret.sources.engines.duckdb_session import LARGEST_PIECE
from topsecret.sources.engines.sql_session import MOST_LISTED
from topsecret.sources.relations.query_size import MOST_JOINED, MOST_PARTS
from topsecret.sources.relations.rebuild import LONGEST
from topsecret.sources.sql.safe_expressions import LONGEST_JOINED


def rows(name: str) -> list[dict[str, str]]:
    with (ROOT / "docs" / "results" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page(name: str) -> str:
    return PAGES[f"docs/{name}.md"]


def short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")


def test_limits_and_defaults() -> None:
    settings, constants = Settings(home=Path()), Constants()
    turns = Turns(settings.engines, settings.tick, settings.limit)
    few, many = series_terms.MAX_COUNTS["cumulative"], series_terms.MAX_COUNTS["window"]
    shares = [int(100 * share) for share in constants.lists]
    assert shares == [100, 75, 50, 30]
    assert constants.longest == 1000
    assert float(constants.ratio) == 0.85
    assert [default_k_bar(k) for k in (10, 100, 250, 2000)] == [1600, 2000, 3000, 10_000]
    assert weights.FULL_ITEMS == 3
    assert tested_or_weighted.CHOICE_SHARE == private_bound.BOUND_SHARE == Fraction(1, 20)
    assert Question.of(item="i", person="p", k=1, epsilon=1.0).numbers.delta == 1e-6
    assert (weak_privacy.LARGEST_EPSILON, weak_privacy.LARGEST_DELTA) == (10, 1e-3)
    assert Fraction(1, 10) == NAMING
    assert due_periods("cumulative", 52, 1)[:4] == (1, 2, 4, 8)
    assert len(due_periods("cumulative", 52, 1)) == 6
    assert measures.MOST == 10**9
    assert measures.FINEST == 6
    assert LARGEST_PIECE == 2**30
    assert 2 * 3**2 <= 5**2
    assert [names_of_each(k) for k in (2, 10, 50, 300)] == [20, 50, 200, 300]
    assert round(constants.longest * constants.ratio**10) == 197
    per_page = inspect.signature(list_answers).parameters["limit"].default
    assert per_page == MOST_ANSWERS
    said = {
        "README.md": ["unless you say otherwise, and δ is 10⁻⁶"],
        "docs/choosing.md": [
            f"126 more than the one of rank {default_k_bar(10) + 1:,} alone can still lose its",
            f"one with $n$ items counts about $\\sqrt{{{weights.FULL_ITEMS}/n}}$ for each",
            f"{K_BAR_FACTOR}·k by default; `tested` has a rule of its own, max(1600, 5k, min(20k, "
            "3000))",
        ],
        "docs/notation.md": [
            "takes k̄ = 20·k, and `tested`, with or without the default's choice, "
            "max(1600, 5k, min(20k, 3000))"
        ],
        "docs/tested-top-k.md": [
            "looks at max(1600, 5k, min(20k, 3000)) leading items",
            f"its strongest three quarters, half or {shares[-1]}% may",
            "So asking for 500 instead of\n200 changes nothing for a list of 197",
            "| `prune` | picks more than needed, as a share of the length | 1/5 |",
        ],
        "docs/glossary.md": ["the default is 10⁻⁶"],
        "docs/guarantee.md": [
            "Only above ε = 10 or δ = 10⁻³ does topsecret warn",
            f"From δ = {weak_privacy.VOID_DELTA} on it refuses",
        ],
        "docs/interoperability.md": [f"at most {weights.MOST_ITEMS} items of a person"],
        "docs/measures.md": [
            f"1, 2, 5, 10, 20 and so on, to {measures.MOST_ROWS:,} rows, or for sums to 10⁹ units",
            f"At most {measures.MOST_ITEMS} items of a person count, or `max_items`",
            "1, 0.1, 0.01 and so on to 0.000001",
            "adds up to 5 to a single item, or 3 to each of two, keeps to a `max_total` of 5",
            "`max_per_item` is at most 10⁹ units",
            "each of up to 5·k items (20 at least; 200, or k, at most)",
        ],
        "docs/pate.md": [f"asks about all public rows up to {MOST_PUBLIC_ROWS:,}, since noise"],
        "docs/planning.md": [f"(`--events`, {Zipf(1.0, 10, 10).events} by default)"],
        "docs/schedules.md": ["Lists are drawn after periods 1, 2, 4, 8, …: a year of weeks has"],
        "docs/series.md": [
            f"a person has *for life* ({few}, or {many} for windows)",
            f"periods after their own ({series_terms.LATE} unless said)",
            "with gaussian(μ²) + failure(δ/10)",
        ],
        "docs/service.md": [
            f"the `k` most common values of a column, up to {LARGEST_K};",
            f"one list for each of up to {grouped_by.MOST_GROUPS} values of a column",
            f"An account has at most {MOST_KEYS} keys.",
            f"values of more than {filters.LONGEST_VALUE} characters, are refused",
            f"counted for `--limit` seconds ({settings.limit:.0f})",
            f"Everybody has their own, at most {saved_questions.MOST}.",
            f"at most so many times ({schedule.MOST_RUNS}), the first time",
            f"for at most {schedules.MOST_RUNS_A_DAY:,} runs a day (counted in each worker), and "
            f"has at most {schedules.MOST_WAITING} schedules with runs to come. "
            f"Of all its schedules {schedules.MOST_KEPT} are kept",
            f"Of each value an entry has {audit.LONGEST} letters at most",
            f"questions that are being counted may finish ({settings.grace:.0f} s)",
            f"no whole request within {connections.PATIENCE:.0f} s is cut off, and of more than "
            f"{connections.MOST_UNFINISHED} such connections",
            f"the handshake has {connections.HANDSHAKE:.0f} s",
            f"nothing of its answer for {connections.READING:.0f} s is cut off, too, and of more "
            f"than {connections.MOST_UNREAD} of those",
            f"Of more than {connections.MOST_OPEN:,} connections at all",
            f"What does not answer within {opening.LIMIT:.0f} s is refused",
            f"Lists of answers end after `limit` ({per_page}), and a larger one means as many",
            f"All ticks (`--tick`, {settings.tick:.0f} s) lie on one grid",
            f"ten seconds and two ticks ({turns.patience():.0f} s)",
        ],
        "docs/sources.md": [
            f"is read in one piece, of at most {LARGEST_PIECE >> 30} GiB of text;",
            f"`counts_part`: {counts.SHARE}, or {counts.SHARE_OF_FEW} for fewer than ten items",
            f"A list of at least {counts.ENDS_EARLY} items that ends early gives",
            f"other databases take up to {MOST_LISTED:,} listed items",
        ],
        "docs/sql.md": [
            f"at most {LONGEST:,} characters and {MOST_PARTS:,} parts (names",
            f"It may join {MOST_JOINED} private tables",
            f"the first {LONGEST_JOINED:,} characters of each count",
            "factors beyond ±10⁹ count as that",
        ],
        "docs/threats.md": [f"a CSV or TSV file of more than {LARGEST_PIECE >> 30} GiB of text"],
    }
    assert [
        (name, text) for name, texts in said.items() for text in texts if text not in PAGES[name]
    ] == []


def test_what_the_tables_of_results_say() -> None:
    picked = {
        name: {
            k: fmean(
                float(row["recall"])
                for row in rows("e11-geometries")
                if row["mechanism"] == name and k in (None, row["k"])
            )
            for k in (None, "10", "100", "500")
        }
        for name in ("auto", "tested", "weighted")
    }
    auto, tested, weighted = picked["auto"], picked["tested"], picked["weighted"]
    assert tested["10"] > weighted["10"]
    assert all(weighted[k] > tested[k] for k in ("100", "500"))
    words = f"(mean recall {short(auto[None])}, picks {short(tested[None])}); for the top 10 "
    words += f"it found {short(tested['10'] - auto['10'])} less than picks alone"
    assert words in page("choosing")
    assert "picks found more of the top 10, weights more of the top 100 and 500" in page("choosing")
    assert len({row["data"] for row in rows("e11-geometries")}) == 15

    measured = rows("e13b-measured-geometries")
    found = {
        name: fmean(float(row[name]) for row in measured)
        for name in ("tested", "bounded sums", "auto")
    }
    both = ("tested", "bounded sums")
    best = fmean(max(float(row[name]) for name in both) for row in measured)
    words = f"finds {short(found['auto'])} of the top items on average, picks alone "
    words += f"{short(found['tested'])}, the other method alone {short(found['bounded sums'])}, "
    words += f"and the better of the two in hindsight {short(best)}"
    assert words in page("measures")

    grown = {row["rows"]: row for row in rows("growth")}
    half, whole = grown["50000000"], grown["100000000"]
    assert (
        f"takes {half['by_hand_seconds']} processor seconds for 50 million rows of a Parquet file, "
        f"`top_k` {half['top_k_seconds']}; for 100 million rows {whole['by_hand_seconds']} and "
        f"{whole['top_k_seconds']}" in page("sources")
    )
    assert float(whole["top_k_2gb_seconds"]) <= float(whole["top_k_seconds"])
    assert "100 million rows took no longer with 2 GB than with all they wanted" in page("sources")
    least = float(grown["100000"]["top_k_seconds"]) - float(grown["100000"]["by_hand_seconds"])
    assert f"Below a million rows one sees the {least:.1f} seconds more" in page("sources")
    more = max(int(row["top_k_mb"]) - int(row["by_hand_mb"]) for row in grown.values())
    assert 60 < more <= 70
    assert "to that of the aggregation by hand, up to 70 MB above it" in page("sources")

    best_cap: dict[str, dict[str, str]] = {}
    for row in rows("e7-peers"):
        other = best_cap.setdefault(row["library"], row)
        best_cap[row["library"]] = max(row, other, key=lambda one: sum(_recalls(one)))
    for library, row in best_cap.items():
        found10, found50 = _recalls(row)
        times = f"{row['first run, s']} s | {row['median, s']} s"
        assert f"| {library} | {found10:.2f} | {found50:.2f} | {times} |" in page("why")


def test_which_way_found_most_over_time() -> None:
    table = rows("over-time")
    best, level = [], 0
    for start in range(0, len(table), 3):
        three = table[start : start + 3]
        best.append(max(three, key=lambda row: float(row["recall"]))["way"].split(",")[0])
        _, schedule, series = ((float(row["recall"]), float(row["half width"])) for row in three)
        level += schedule[0] - schedule[1] < series[0] + series[1] and schedule[0] > series[0]
    assert (best.count("schedule"), best.count("series"), level) == (5, 1, 2)
    words = "in five of six settings, in two of them level with the series, and the series in one"
    assert f"the schedule was the best of the three {words}" in page("series")


def _recalls(row: dict[str, str]) -> list[float]:
    return [float(row[f"recall k={k}"].split()[0]) for k in (10, 50)]


def test_how_large_the_noise_of_a_spectral_ranking_is() -> None:
    """S·m·k at ε = 1 with a teleport of 0.3, as on the page of results."""
    moved = {
        row["contest"]: float(row["sensitivity"]) * int(row["k"])
        for row in rows("ranking")
        if row["method"] == "spectral, teleport 0.3"
    }
    assert round(moved["chatbot arena"] * 20, 2) == 0.05
    assert round(moved["football"] * 337) == 7
    assert moved["tennis"] * 7572 > 7
    for told in ("(20 models,", "(337 teams,", "(7,572 names,"):
        assert told in page("results/ranking")
    assert "works at ε = 1 (there it is about a twentieth)" in page("ranking")
    assert "on sparse ones it does not (about seven, or more)" in page("ranking")


def test_how_the_noise_of_a_series_grows() -> None:
    made = SeriesNumbers.calibrated("cumulative", 52, 1, 1, 1.0, 1e-6)
    factor = made.deviation(52) * float(made.mu_squared) ** 0.5
    words = f"({factor:.1f} for a year of weeks, where independent lists have {52**0.5:.1f})"
    assert words in page("series")


def test_what_a_series_relies_on() -> None:
    weeks = Periods.of(start="2026-01-05", every="week", until="2026-12-31")
    window = SeriesNumbers.calibrated("window", 52, 2, 5, 1.0, 1e-6)
    terms = series_terms.SeriesTerms("day", weeks, series_terms.LATE, window, {})
    section = page("series").split(", three conditions\n")[1].split("\n## ")[0]
    assert section.count("\n- **") == len(terms.caveats) == 3


def test_how_many_counts_a_series_wants() -> None:
    found = compare_over_time(
        persons=3000, items_per_person=4, kth_count=300, k=3, periods=12, epsilon=1
    )
    command = "--persons 3000 --items-per-person 4 --kth-count 300 --periods 12 -k 3 --epsilon 1"
    assert command in page("series").replace("\\\n    ", "")
    recall = {limit.max_counts: f"{limit.recall:.2f}" for limit in found.limits}
    assert (
        f"a person has 4 items, and 1 count is expected to find {recall[1]} of the top 3, 3 counts "
        f"{recall[3]} and 10 counts {recall[10]}:" in page("series")
    )


def test_what_a_series_finds_at_early_weeks() -> None:
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows("early-weeks"):
        setting = row["data"], row["periods"], row["k"], row["epsilon"]
        found.setdefault(setting, {})[row["way"]] = float(row["recall"])
    assert len(found) == 6
    assert all(ways["series"] == max(ways.values()) for ways in found.values())
    assert "the series found most in all six; but those weeks were chosen" in page("series")
    widths = {
        (row["data"], row["periods"], row["k"], row["epsilon"], row["way"]): float(
            row["half width"]
        )
        for row in rows("early-weeks")
    }
    level = [
        ways["series"] - ways["schedule"] < widths[*key, "series"] + widths[*key, "schedule"]
        for key, ways in found.items()
    ]
    assert sum(level) == 1
    assert "in one of the six the schedule was level with it" in page("series")
    told = page("results/early-weeks")
    assert "Thirteen choices of six weeks were tried" in told
    assert "out of thirteen choices, to fit a prototype's numbers" in page("series")


def test_what_the_comparisons_left_out() -> None:
    first, second = page("results/e7-peers"), page("results/e7b-peer-sets")
    assert "the limit was lowered three times while the first sets ran" in second
    assert "which was lowered three times, for time, while the first sets ran" in page("why")
    assert "Tumult Analytics is in E7 alone, for time" in second
    assert {row["runs"] for row in rows("e7-peers")} == {"3"}
    assert "with the same guarantee and three runs each" in page("why")
    for told in (first, second):
        assert "the plan's choice, `tested-or-weighted`" in told
        assert not any(name in told for name in ("diffprivlib", "BigQuery", "Snowflake"))


def test_what_more_than_rho_is_known_of_picks() -> None:
    loss = GumbelTopK(k=10, scale=10).loss
    four = loss + loss + loss + loss
    by_rho = zcdp(4 * Fraction(10, 8 * 10**2)).epsilon(1e-6)
    told = f"are ε = {by_rho:.3f} by their ρ and {four.epsilon(1e-6):.3f} here, at δ = 10⁻⁶"
    assert told in page("interoperability")


def test_how_much_less_noise_counts_have() -> None:
    shares = [(m**0.5 + 1) / 2 / m**0.5 for m in (10, 10_000)]
    assert round(1 - shares[0], 2) == 0.34
    assert round(1 - shares[1], 1) == 0.5
    assert "a third less for ten counts, towards half for long lists" in page("sources")


def test_what_an_order_costs() -> None:
    small, large = picks(5, 0.25), picks(5, 0.5)
    rising, falling = (small + large).epsilon(1e-5), large.then(small).epsilon(1e-5)
    words = (
        f"five of 0.25 before five of 0.5 cost {rising:.3f} at δ = 10⁻⁵, the other way round "
        f"{falling:.3f}."
    )
    assert words in page("accounting")
    together = absorbed(picks(100, 0.04).pick_runs, mu_squared=0.006)
    assert f"epsilon(1e-6)  # {gaussian(together).epsilon(1e-6):.2f}…" in page("accounting")


def test_when_stable_answers_nothing() -> None:
    for epsilon, share in ((1, "0%"), (2, "0%"), (3, "1%")):
        made = plan_answers(22, 400, queries=500, epsilon=epsilon, delta=1e-6)
        assert f"{made.rows[0].stable_answers[-1]:.0%}" == share
    assert "With 400 teachers and 500 queries that is so up to ε = 2." in page("pate")


def test_what_fifty_two_lists_need() -> None:
    asked = Question.of(item="i", person="p", k=10, epsilon=1.0, delta=1e-6, choose="public")
    one = planned(asked.numbers, asked, None, 52).each.question
    lead = plan(k=10, epsilon=one.epsilon, delta=one.delta)["tested"].needed_lead
    words = f"the last of ten items must be some {round(lead, -2):,} people ahead of the rest"
    assert words in page("schedules")
