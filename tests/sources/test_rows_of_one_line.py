"""A quote that one person's row leaves open takes in nobody else's rows."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from command import run
from topsecret import top_k
from topsecret.errors import InvalidParameter, SourceError
from topsecret.sources import CountQuery
from topsecret.sources.engines import duckdb_session
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.file_form import File

QUERY = CountQuery(item="place", person="user", rows=3)
OTHERS = "".join(f"u{n},home,1\n" for n in range(400))
HEADER = "user,place,note\n"

OPEN = {
    "two rows of one person": ('p,"TV,1\n', 'p,b",1\n'),
    "a row and another's inches": ('p,"TV,1\n', 'q,24",1\n'),
    "a row and another's quoted comma": ('p,"TV\n', 'q,x,",abc"\n'),
    "in a column that nobody asks for": ('p,home,"TV\n', 'p,home,b"\n'),
    "with another line end": ('p,"TV,1\r', 'p,b",1\r'),
}


@pytest.mark.parametrize("where", [(), [("place", "=", "home")], [("user", "!=", "p")]])
@pytest.mark.parametrize("case", OPEN)
def test_rows_behind_an_open_quote_do_not_vanish(tmp_path: Path, case: str, where: object) -> None:
    first, last = OPEN[case]
    path = tmp_path / "visits.csv"
    path.write_text(HEADER + first + OTHERS + last, newline="")
    query = CountQuery(item="place", person="user", rows=3, where=where)  # type: ignore[arg-type]
    with pytest.raises(SourceError, match=r"needs a line of its own, .* lines: --multiline;"):
        FileSource(path).leading_counts(query)


def test_tabs_have_no_other_rule(tmp_path: Path) -> None:
    path = tmp_path / "visits.tsv"
    text = 'user\tplace\np\t"best TV\n' + OTHERS.replace(",", "\t").replace("\t1", "")
    path.write_text(text + 'q\tTV 24"\n')
    with pytest.raises(SourceError, match=r"^visits.tsv is not well-formed TSV"):
        FileSource(path).leading_counts(QUERY)


def test_values_of_several_lines_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(HEADER + 'ann,"the pier,\nby night",1\n' + OTHERS)
    counts = FileSource(File(path, multiline=True)).leading_counts(QUERY)
    assert counts == [("home", 400), ("the pier,\nby night", 1)]
    asked = ("--item", "place", "--person", "user", "-k", "1", "--epsilon", "5")
    refused = run("top", str(path), *asked)
    assert refused.returncode == 2
    assert "--multiline" in refused.stderr
    assert "home" in run("top", str(path), *asked, "--multiline").stdout
    report = run("doctor", str(path))
    assert "line 2: has a value over several lines (allowed by --multiline)" in report.stdout
    assert "No fault found." in run("doctor", str(path), "--multiline").stdout


def test_only_csv_files_have_such_values(tmp_path: Path) -> None:
    path = tmp_path / "visits.jsonl"
    path.write_text('{"user": "ann", "place": "park"}\n')
    with pytest.raises(InvalidParameter, match=r"^multiline=True is for CSV files; visits.jsonl"):
        FileSource(File(path, multiline=True))


@pytest.mark.parametrize(
    "encoding", ["utf-7", "unicode_escape", "punycode", "iso2022_jp", "hz", "mac-arabic"]
)
def test_one_row_is_not_several_in_another_encoding(encoding: str) -> None:
    with pytest.raises(InvalidParameter, match=r"one row could become several; convert the file"):
        File("visits.csv", encoding=encoding)


BROKEN = ["p,shop", "p,shop,1,x", " ", 'p,"shop', "p,shop,\r1"]
PIECE = 8_000_000
"""Bytes after which DuckDB would begin another piece of a file."""


@pytest.mark.parametrize("multiline", [False, True])
@pytest.mark.parametrize("row", BROKEN)
def test_no_row_that_begins_a_piece_makes_others_vanish(
    tmp_path: Path, row: str, multiline: bool
) -> None:
    before = "u000000,home,1\n" * ((PIECE - len(HEADER)) // 15)
    rest = PIECE + 1 - len(HEADER) - len(before)
    first = f"u,home,{'1' * (rest - 8)}\n" if rest > 8 else f"u,home,{'1' * (rest + 7)}\n"
    before = before if rest > 8 else before[15:]
    path = tmp_path / "visits.csv"
    others = "".join(f"v{n:06},work,1\n" for n in range(20_000))
    path.write_text(HEADER + first + before + row + "\n" + others, newline="")
    assert path.read_bytes()[PIECE + 1 :].startswith(row.encode())
    with pytest.raises(SourceError, match=r"^visits.csv is not well-formed CSV"):
        FileSource(File(path, multiline=multiline)).leading_counts(QUERY)


def test_a_file_is_read_in_one_piece_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(HEADER + OTHERS)
    monkeypatch.setattr(duckdb_session, "LARGEST_PIECE", len(HEADER + OTHERS) - 1)
    with pytest.raises(SourceError, match=r"^visits.csv holds more than 1 GiB of text: split it"):
        FileSource(path).leading_counts(QUERY)


def test_a_quote_of_the_header_takes_in_no_row(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    for last in ("q,home,24", 'q,home,24"'):
        path.write_text('user,place,"size\n' + OTHERS + f"{last}\n")
        with pytest.raises(SourceError, match=r"^visits.csv has no header line"):
            FileSource(path).leading_counts(QUERY)


@pytest.mark.parametrize("name", [' "size', ' "si""ze', ' "size" x', ' "size" "x'])
@pytest.mark.parametrize("multiline", [False, True])
def test_nor_does_a_quote_behind_a_space(tmp_path: Path, name: str, multiline: bool) -> None:
    path = tmp_path / "visits.csv"
    for last in ("q,home,24", 'q,home,24"', 'q,home, "24"'):
        path.write_text(f"user,place,{name}\n" + OTHERS + f"{last}\n")
        with pytest.raises(SourceError, match=r"^visits.csv has no header line"):
            FileSource(File(path, multiline=multiline)).leading_counts(QUERY)


@pytest.mark.parametrize("header", ["user, place, note", 'user,place, "size"', "user,place, size"])
def test_spaces_of_the_header_are_read_as_ever(tmp_path: Path, header: str) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(f"{header}\n{OTHERS}")
    item = "place" if ",place" in header else " place"
    query = CountQuery(item=item, person="user", rows=3)
    assert FileSource(path).leading_counts(query) == [("home", 400)]


def test_a_public_list_may_have_values_of_several_lines(tmp_path: Path) -> None:
    path, items = tmp_path / "visits.csv", tmp_path / "items.csv"
    path.write_text(HEADER + OTHERS)
    items.write_text('place\nhome\n"by the\npier"\n')
    database = tmp_path / "visits.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE visits (user TEXT, place TEXT)")
        rows = [(f"u{n}", "home") for n in range(400)]
        connection.executemany("INSERT INTO visits VALUES (?, ?)", rows)
    connection.close()
    asked: dict[str, Any] = {"item": "place", "person": "user", "k": 1, "epsilon": 5.0}
    sources: list[tuple[Any, str | None]] = [(path, None), (f"sqlite:///{database}", "visits")]
    for source, table in sources:
        release = top_k(source, table=table, domain=str(items), **asked)
        assert release.items == ("home",)
