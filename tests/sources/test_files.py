"""Paths, columns and broken files: one line that names the fix, and no data in it."""

import os
import traceback
from pathlib import Path

import duckdb
import pytest

from topsecret import File
from topsecret.errors import DataIndependentFailure, InvalidParameter, SourceError, UnknownColumn
from topsecret.sources import CountQuery
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.schema import columns_of

QUERY = CountQuery(item="place", person="user", rows=10)


def save(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def failure(path: Path, query: CountQuery = QUERY) -> SourceError:
    with pytest.raises(SourceError) as caught:
        FileSource(path).leading_counts(query)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "name", ["it's here.csv", "a*b.csv", "a?b.csv", "[x].csv", 'q"q.csv', "ü.csv"]
)
def test_a_path_is_taken_literally(tmp_path: Path, name: str) -> None:
    save(tmp_path / "axb.csv", "user,place\nann,wrong\n")
    path = save(tmp_path / name, "user,place\nann,right\n")
    assert FileSource(path).leading_counts(QUERY) == [("right", 1)]


def test_a_directory_name_is_not_a_column(tmp_path: Path) -> None:
    folder = tmp_path / "user=eve"
    folder.mkdir()
    duckdb.sql("SELECT 'ann' AS \"user\", 'park' AS place").write_parquet(str(folder / "e.parquet"))
    assert FileSource(folder / "e.parquet").leading_counts(QUERY) == [("park", 1)]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("item", "person"),
    [
        ('x"; drop table y; --', "us'er"),
        ("person", "item"),
        ("pairs", "events"),
        ("persons", "select"),
        ("unused 3", "unused 1"),
        ("ort", "Ünï cødé"),
    ],
)
def test_any_column_name_works(tmp_path: Path, suffix: str, item: str, person: str) -> None:
    relation = duckdb.sql(
        "SELECT * FROM (VALUES (1, 'ann', 'park'), (2, 'ann', 'park'), (3, 'bob', 'park')) "
        't("other", "{}", "{}")'.format(person.replace('"', '""'), item.replace('"', '""'))
    )
    path = tmp_path / f"events{suffix}"
    if suffix == ".parquet":
        relation.write_parquet(str(path))
    elif suffix == ".csv":
        relation.write_csv(str(path))
    else:
        duckdb.sql(f"COPY (FROM relation) TO '{path}' (FORMAT json)")
    query = CountQuery(item=item, person=person, rows=5)
    assert FileSource(path).leading_counts(query) == [("park", 2)]


def test_columns_that_differ_by_case_are_told_apart(tmp_path: Path) -> None:
    path = save(tmp_path / "e.csv", "User,user,PLACE,place\nx,ann,y,park\n")
    assert FileSource(path).leading_counts(QUERY) == [("park", 1)]


@pytest.mark.parametrize(
    ("type_and_value", "item"),
    [
        ("7::BIGINT", 7),
        ("true", True),
        ("DATE '2024-02-29'", "2024-02-29"),
        ("'infinity'::TIMESTAMP", "infinity"),
        ("'290000-01-01'::DATE", "290000-01-01"),
        ("'nan'::DOUBLE", "nan"),
        ("[1, 2]", "[1, 2]"),
        ("{'a': 1}", "{'a': 1}"),
        ("1.50::DECIMAL(9,2)", "1.50"),
    ],
)
def test_typed_columns(tmp_path: Path, type_and_value: str, item: object) -> None:
    path = tmp_path / "e.parquet"
    duckdb.sql(f'SELECT 1 AS "user", {type_and_value} AS place').write_parquet(str(path))
    assert FileSource(path).leading_counts(QUERY) == [(item, 1)]


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    assert str(failure(path)) == f"{path} does not exist; check the path"


def test_a_directory(tmp_path: Path) -> None:
    assert str(failure(tmp_path)) == f"{tmp_path} is not a file; name one file of events"


def test_an_impossible_path() -> None:
    assert "is not a usable path" in str(failure(Path("x" * 5000 + ".csv")))
    with pytest.raises(SourceError, match="is not a usable path"):
        FileSource("a\0b.csv")


def test_an_unknown_suffix(tmp_path: Path) -> None:
    path = save(tmp_path / "e.xlsx", "")
    assert str(failure(path)) == (
        f"{path} has no known suffix (.csv, .tsv, .json, .jsonl, .ndjson, .parquet, text formats "
        "also with .gz or .zst); say what it is, for example --format csv (in Python: "
        "File(path, format='csv'))"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = save(tmp_path / "e.csv", "user,place\n")
    path.chmod(0)
    assert "may not be read; give yourself read permission" in str(failure(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.csv", "time,user,venue\n1,ann,park\n"),
        ("e.tsv", "time\tuser\tvenue\n1\tann\tpark\n"),
    ],
)
def test_a_missing_column_lists_no_text(tmp_path: Path, name: str, content: str) -> None:
    """The first line may be a person's row: whoever guesses a value in it is told nothing."""
    error = failure(save(tmp_path / name, content))
    assert isinstance(error, UnknownColumn)
    tab = "'\\t'" if name == "e.tsv" else "','"
    assert str(error) == (
        f"{name} has no column 'place'; its first line must name the columns; look at it with: "
        f"head -n 1 {name} (another delimiter than {tab}: --delimiter ';'; no such line: "
        "--header user,place)"
    )


def test_no_line_of_json_lines_is_the_schema(tmp_path: Path) -> None:
    """Whoever comes first would decide for all whether there is an answer."""
    lines = ['{"user": "ann", "place": "park"}', '{"user": "bob"}', "{}", '{"place": "park"}']
    for first in range(4):
        text = "\n".join(lines[first:] + lines[:first]) + "\n"
        path = save(tmp_path / "e.jsonl", text)
        assert FileSource(path).leading_counts(QUERY) == [("park", 1)]
    assert FileSource(save(path, "\n")).leading_counts(QUERY) == []
    assert FileSource(save(path, "")).leading_counts(QUERY) == []
    assert columns_of(save(path, "\n" + lines[0] + "\n")) == ("user", "place"), "for the owner"
    assert columns_of(save(path, "no JSON\n")) == ()
    declared = File(path, header=["user", "town"])
    with pytest.raises(UnknownColumn, match=r"e\.jsonl has no column 'place'"):
        FileSource(declared).leading_counts(QUERY)


def test_a_missing_column_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    duckdb.sql('SELECT 1 AS "user", 2 AS venue').write_parquet(str(path))
    assert str(failure(path)) == "e.parquet has no column 'place'; choose from: user, venue"


def test_a_file_without_header_does_not_show_its_first_row(tmp_path: Path) -> None:
    path = save(tmp_path / "e.csv", "ann,CANARY\n")
    assert str(failure(path)) == (
        "e.csv has no column 'place'; "
        "its first line must name the columns; look at it with: head -n 1 e.csv (another "
        "delimiter than ',': --delimiter ';'; no such line: --header user,place)"
    )


def test_a_column_twice(tmp_path: Path) -> None:
    path = save(tmp_path / "e.csv", "user,place,place\na,b,c\n")
    assert str(failure(path)) == "e.csv has more than one column 'place'; rename one of them"


def test_an_empty_csv_has_no_schema(tmp_path: Path) -> None:
    path = save(tmp_path / "e.csv", "")
    assert str(failure(path)) == ("e.csv has no header line; its first line must name the columns")


CSV_FAULT = (
    "every row needs a line of its own, as many fields as the header, closed quotes and UTF-8 "
    "text (values over several lines: --multiline; another encoding: --encoding latin-1). The "
    "owner of the file finds the row with topsecret doctor FILE"
)
JSON_FAULT = "every line must be one JSON object in UTF-8 (from a JSON array: jq -c '.[]')"
BROKEN = [
    ("short.csv", b"user,place\nann,park\nCANARY\n", CSV_FAULT),
    ("long.csv", b"user,place\nann,CANARY,x\n", CSV_FAULT),
    ("quote.csv", b'user,place\nann,"CANARY\n', CSV_FAULT),
    ("hides.csv", b'user,place\nann,park\nbob,"CANARY\ncy,park\n', CSV_FAULT),
    ("latin1.csv", b"user,place\nann,CANARY\xff\n", CSV_FAULT),
    ("late.csv", b"user,place\n" + b"ann,park\n" * 200_000 + b"bob,CANARY\xff\n", CSV_FAULT),
    ("cut.csv.gz", b"\x1f\x8b\x08CANARY", CSV_FAULT),
    ("open.jsonl", b'{"user": 1, "place": "CANARY\n', JSON_FAULT),
    ("later.jsonl", b'{"user": 1, "place": "x"}\n{"user": "CANARY\n', JSON_FAULT),
    ("array.json", b'[{"user": 1, "place": "CANARY"}]\n', JSON_FAULT),
    ("twice.json", b'{"user": 1, "place": "x"}\n{"user": 1, "user": "CANARY"}\n', JSON_FAULT),
    ("deep.json", b"[" * 100_000, JSON_FAULT),
    ("fake.parquet", b"PAR1CANARYPAR1", "write it again, it may be cut short or not be Parquet"),
]


@pytest.mark.parametrize(("name", "content", "fix"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_broken_file_shows_no_data(tmp_path: Path, name: str, content: bytes, fix: str) -> None:
    error = failure(save(tmp_path / name, content))
    assert fix in str(error)
    assert error.__context__ is None
    assert error.__cause__ is None
    assert "CANARY" not in "".join(traceback.format_exception(error))


def test_the_engine_is_closed(tmp_path: Path) -> None:
    from topsecret.sources.engines.duckdb_session import closed_engine

    path = save(tmp_path / "e.csv", "a\n")
    other = save(tmp_path / "f.csv", "a\n")
    with closed_engine(path) as engine:
        for forbidden in (
            f"FROM '{other}'",
            "FROM 'https://example.com/x.csv'",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            "INSTALL spatial",
            "SET enable_external_access = true",
        ):
            with pytest.raises(duckdb.Error):
                engine.execute(forbidden)


@pytest.mark.parametrize(
    ("where", "error", "ended"),
    [
        ("duckdb.connect", duckdb.InvalidInputException("CANARY"), "released"),
        ("tempfile.TemporaryDirectory", PermissionError("CANARY"), "released"),
        # What others read may have filled memory or disk.
        ("duckdb.connect", duckdb.OutOfMemoryException("CANARY"), "failed"),
        ("tempfile.TemporaryDirectory", OSError("CANARY"), "failed"),
    ],
)
def test_an_engine_that_cannot_be_started_is_charged_only_where_rows_may_be_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: Exception, ended: str
) -> None:
    from topsecret.ledger import Flexible, Ledger
    from topsecret.questions.top_k import top_k

    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("events", Flexible.of(epsilon=4, delta=1e-5), person="user")
    path = save(tmp_path / "e.csv", "user,place\nu,a\n")

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(f"topsecret.sources.engines.duckdb_session.{where}", fails)
    with pytest.raises(SourceError, match="DuckDB cannot be started") as found:
        top_k(path, item="place", person="user", k=1, epsilon=0.5, ledger=ledger, dataset="events")
    assert isinstance(found.value, DataIndependentFailure) == (ended == "released")
    assert ledger.history("events")[-1].event == ended
    assert "CANARY" not in "".join(traceback.format_exception(found.value))


@pytest.mark.parametrize(("item", "person"), [("", "user"), ("place", ""), (None, "user")])
def test_a_column_needs_a_name(item: str, person: str) -> None:
    with pytest.raises(InvalidParameter, match="must be the name of a column"):
        CountQuery(item=item, person=person, rows=1)


def test_item_and_person_differ() -> None:
    with pytest.raises(InvalidParameter, match="must be two different columns"):
        CountQuery(item="user", person="User", rows=1)
