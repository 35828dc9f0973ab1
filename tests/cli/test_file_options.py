"""Files as people have them: other delimiters, encodings, no header, no suffix, standard input."""

import gzip
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard

from command import COMMAND, run
from topsecret.errors import InvalidParameter, MissingExtra, SourceError
from topsecret.sources import CountQuery
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.file_form import File

QUERY = CountQuery("place", "user", 10)
ROWS = [("u1", "café"), ("u2", "café"), ("u3", "pier")]
COUNTS = [("café", 2), ("pier", 1)]
ASKED = ["--item", "place", "--person", "user", "-k", "1", "--epsilon", "5"]


def table(delimiter: str = ",", header: str = "user{}place\n", rows: Any = ROWS) -> str:
    return header.format(delimiter) + "".join(f"{a}{delimiter}{b}\n" for a, b in rows)


def many(delimiter: str = ",") -> str:
    return table(delimiter, rows=[(f"u{number}", "café") for number in range(2000)])


@pytest.mark.parametrize("delimiter", [";", "|", "\t", ":"])
def test_another_delimiter_is_said_and_the_error_says_how(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "excel.csv"
    path.write_text(table(delimiter), encoding="utf-8")
    with pytest.raises(
        SourceError, match=r"\(another delimiter than ',': --delimiter ';'; no such"
    ):
        FileSource(path).leading_counts(QUERY)
    assert FileSource(File(path, delimiter=delimiter)).leading_counts(QUERY) == COUNTS


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
def test_another_encoding_is_said(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(table().encode(encoding))
    source = FileSource(File(path, encoding=encoding))
    assert source.leading_counts(QUERY) == COUNTS
    assert source.name == "old.csv"


def test_a_wrong_encoding_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(table().encode("latin-1"))
    for source in (path, File(path, encoding="utf-16")):
        with pytest.raises(SourceError, match=r"^old.csv is not well-formed CSV: ") as caught:
            FileSource(source).leading_counts(QUERY)
        assert "caf" not in str(caught.value)
        assert caught.value.__context__ is None


def test_no_row_is_copied_before_a_question_is_paid_for(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(table().encode("latin-1"))
    source = FileSource(File(path, encoding="latin-1"))
    with source.session(QUERY):
        assert not source._readable[0].path.exists()
    source.leading_counts(QUERY)
    copy = source._readable[0].path
    assert copy.stat().st_mode & 0o077 == 0 or copy.parent.stat().st_mode & 0o077 == 0
    del source
    assert not copy.exists()


def test_columns_without_a_header_line(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text(table(header=""), encoding="utf-8")
    with pytest.raises(SourceError, match=r"no such line: --header user,place\)$"):
        FileSource(path).leading_counts(QUERY)
    named = File(path, header=["user", "place"])
    assert FileSource(named).leading_counts(QUERY) == COUNTS


@pytest.mark.parametrize("name", ["e.txt", "events", "e.dat.gz"])
def test_a_format_that_no_suffix_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    pack = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(pack(table().encode()))
    with pytest.raises(SourceError, match=r"say what it is, for example --format csv"):
        FileSource(path)
    assert FileSource(File(path, format="csv")).leading_counts(QUERY) == COUNTS


@pytest.mark.parametrize("name", ["e.csv.zst", "e.tsv.zst", "e.jsonl.zst"])
def test_zstd(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = table("\t" if "tsv" in name else ",")
    if "jsonl" in name:
        text = "".join(f'{{"user": "{a}", "place": "{b}"}}\n' for a, b in ROWS)
    path.write_bytes(zstandard.compress(text.encode()))
    assert FileSource(path).leading_counts(QUERY) == COUNTS


def test_zstd_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "e.csv.zst").write_bytes(b"")
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"pip install .\.\[zstd\]."):
        FileSource(tmp_path / "e.csv.zst").leading_counts(QUERY)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_json_lines_with_a_byte_order_mark(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / ("e.jsonl" if pack is bytes else "e.jsonl.gz")
    lines = "".join(f'{{"user": "{a}", "place": "{b}"}}\n' for a, b in ROWS)
    path.write_bytes(pack(lines.encode("utf-8-sig")))
    assert FileSource(path).leading_counts(QUERY) == COUNTS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delimiter": ";;"}, "delimiter=';;' must be one ASCII character, or tab"),
        ({"delimiter": '"'}, "must be one ASCII character, or tab"),
        ({"encoding": "klingon"}, "encoding='klingon' is not known; write, say, latin-1"),
        ({"format": "xls"}, "format='xls' must be one of csv, tsv, json-lines, parquet"),
        ({"header": []}, "header=[] must name every column, in the order of the file"),
        ({"header": "user,place"}, "must name every column"),
    ],
)
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        File("events.csv", **options)
    assert said in str(caught.value)


def test_options_that_do_not_go_with_a_format(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").touch()
    with pytest.raises(InvalidParameter, match=r"delimiter=';' is for CSV files; e.jsonl is JSON"):
        FileSource(File(tmp_path / "e.jsonl", delimiter=";"))
    with pytest.raises(InvalidParameter, match=r"standard input has no suffix .* add --format csv"):
        File("-")


def test_how_a_file_is_read_is_part_of_the_question(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(table(), encoding="utf-8")
    plain = FileSource(path).fingerprint()
    assert plain == FileSource(File(path)).fingerprint()
    assert FileSource(File(path, encoding="latin-1")).fingerprint() != plain


def test_standard_input_is_spooled_and_gone(tmp_path: Path) -> None:
    words = [*COMMAND, "top", "-", "--format", "csv", "--delimiter", ";", *ASKED, "--csv"]
    done = subprocess.run(
        words,
        input=many(";").encode(),
        capture_output=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        check=False,
    )
    assert done.stderr == b""
    assert "café" in done.stdout.decode()
    assert not list(tmp_path.iterdir())


def test_an_unquoted_pattern_is_explained(tmp_path: Path) -> None:
    done = run("top", "a.csv", "b.csv", *ASKED, cwd=tmp_path)
    assert done.returncode == 2
    assert "put a pattern of files into quotes: 'events/*.csv'" in done.stderr


FAULTS = {
    "short.csv": (b"user,place\na,x\nb\n", "line 3: has 1 fields, and the header 2: 'b'"),
    "quote.csv": (b'user,place\na,"x\n', "line 2: has a quote that does not end"),
    "latin.csv": (b"user,place\na,caf\xe9\n", "line 2: is not utf-8: 'a,caf"),
    "array.jsonl": (b'{"user": 1}\n[1]\n', "line 2: is not one JSON object: '[1]'"),
    "no.parquet": (b"user,place\n", "line 1: begins with b'user', not with PAR1"),
    "cut.csv.gz": (gzip.compress(b"user,place\n" * 99)[:-9], "line 0: cannot be read to its end"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_doctor_finds_the_row_and_says_that_this_is_secret(tmp_path: Path, name: str) -> None:
    content, said = FAULTS[name]
    (tmp_path / name).write_bytes(content)
    done = run("doctor", name, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith(f"SECRET: this report quotes rows of {name}.")
    assert f"{name}, {said}" in done.stdout


def test_the_doctor_finds_nothing_in_a_sound_file(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(table(";"), encoding="utf-8")
    done = run("doctor", "e.csv", "--delimiter", ";", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "No fault found.")
