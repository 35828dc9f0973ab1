"""What every format must agree on: distinct persons per item, ranked by public rules."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from events import of_several_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.sources import CountQuery, Source
from topsecret.sources.engines.duckdb import FileSource

Writer = Callable[[Sequence[tuple[str | None, str | None]]], Path]

QUERY = CountQuery(item="place", person="user", rows=10)


def test_a_person_counts_once_per_item(events: Writer) -> None:
    path = events([("ann", "park"), ("ann", "park"), ("ann", "pier"), ("bob", "park")])
    assert FileSource(path).leading_counts(QUERY) == [("park", 2), ("pier", 1)]


def test_rows_without_person_or_item_are_dropped(events: Writer) -> None:
    path = events([(None, "park"), ("ann", None), (None, None), ("bob", "pier")])
    assert FileSource(path).leading_counts(QUERY) == [("pier", 1)]


def test_ties_are_broken_by_code_point(events: Writer) -> None:
    places = ["ä", "z", "B", "a", "ａ", "😀", "10", "9"]
    path = events([("ann", place) for place in places])
    assert [item for item, _ in FileSource(path).leading_counts(QUERY)] == sorted(places)


def test_only_the_asked_rows_come_back(events: Writer) -> None:
    path = events([(f"u{n}", f"p{n % 7}") for n in range(49)])
    query = CountQuery(item="place", person="user", rows=3)
    assert FileSource(path).leading_counts(query) == [("p0", 7), ("p1", 7), ("p2", 7)]


def test_no_rows_is_an_ordinary_input(events: Writer) -> None:
    assert FileSource(events([])).leading_counts(QUERY) == []


def test_text_stays_text(events: Writer) -> None:
    """Numbers are not parsed: a guessed type would depend on what other persons wrote."""
    path = events([("1", "01"), ("01", "1"), ("2", "1.0"), ("3", "2024-01-01"), ("4", "true")])
    items = [item for item, _ in FileSource(path).leading_counts(QUERY)]
    assert items == ["01", "1", "1.0", "2024-01-01", "true"]


def test_quotes_and_newlines_inside_values(events: Writer) -> None:
    place = 'the "Anchor",\nby\tthe pier\'s end'
    path = events([("ann", place)])
    assert FileSource(of_several_lines(path)).leading_counts(QUERY) == [(place, 1)]


text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)


@settings(max_examples=12)
@given(rows=st.lists(st.tuples(st.sampled_from("abcdef"), text), max_size=30))
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_agrees_with_counting_by_hand(
    tmp_path: Path,
    write_events: Callable[..., Path],
    suffix: str,
    rows: list[tuple[str, str]],
) -> None:
    path = write_events(tmp_path / f"events{suffix}", rows)
    counts = Counter(place for _, place in set(rows))
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].encode()))
    assert FileSource(of_several_lines(path)).leading_counts(QUERY) == ranked[:10]


@settings(max_examples=12)
@given(
    rows=st.lists(st.tuples(st.sampled_from("abcdef"), text), max_size=20),
    new=st.lists(text, min_size=1, max_size=8),
    place=st.integers(0, 20),
)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_one_person_more_moves_each_count_by_at_most_one(
    tmp_path: Path,
    write_events: Callable[..., Path],
    suffix: str,
    rows: list[tuple[str, str]],
    new: list[str],
    place: int,
) -> None:
    path = tmp_path / f"events{suffix}"
    query = CountQuery(item="place", person="user", rows=100)
    read = of_several_lines(path)
    write_events(path, rows)
    before = dict(FileSource(read).leading_counts(query))
    more = [*rows[:place], *(("new person", item) for item in new), *rows[place:]]
    write_events(path, more)
    after = dict(FileSource(read).leading_counts(query))
    assert after == Counter(before) + Counter(set(new))


def test_a_file_is_a_source(events: Writer) -> None:
    path = events([])
    source = FileSource(path)
    assert isinstance(source, Source)
    assert source.name == path.name
