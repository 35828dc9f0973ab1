"""Stored forms are promises: fingerprints, records and the ledger's entries stay as they are.

A file here is never changed to make a test pass: a stored form that must change gets a new number,
and a test that the old one is still read. ``WRITE=golden`` writes what is missing.
"""

import datetime
import json
import os
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

from topsecret import Column, Expression, top_k
from topsecret.ledger import Flexible, Ledger
from topsecret.ledger.chain import canonical, digest
from topsecret.mechanisms import LimitedDomain
from topsecret.questions.question import Groups, Question
from topsecret.results.record import from_record, to_record
from topsecret.results.release import Release
from topsecret.sources.engines.duckdb import FileSource

HERE = Path(__file__).parent
PLAIN: dict[str, Any] = {"item": "place", "person": "user", "k": 3, "epsilon": 0.5}
WHERE: list[Any] = [
    ("country", "in", ["FR", "DE"]),
    ("born", "<", datetime.date(2000, 1, 1)),
    ("paid", ">=", Decimal("9.50")),
    ("seen", "!=", None),
    Expression("lower(place) LIKE 'p%'"),
]
QUESTIONS: dict[str, Question] = {
    "plain": Question.of(**PLAIN),
    "auto": Question.of(**PLAIN | {"k": "auto"}),
    "numbers": Question.of(**PLAIN, delta=1e-7, k_bar=30, mechanism="limited-domain"),
    "capped": Question.of(**PLAIN, max_items=2, salt=bytes(16)),
    "filtered": Question.of(**PLAIN, where=WHERE),
    "several": Question.of(**PLAIN | {"item": ("place", "country")}),
    "expression": Question.of(**PLAIN | {"item": Expression("lower(place)")}),
    "listed": Question.of(**PLAIN, domain=["park", "pier", "zoo"], counts=True),
    "range": Question.of(**PLAIN, domain=range(0, 100, 5)),
    "column": Question.of(**PLAIN, domain=Column(("shop", "venues"), "id")),
    "disjoint": Question.of(None, Groups("country", ("FR", "DE"), disjoint=True), **PLAIN),
    "overlapping": Question.of(None, Groups("year", (2024, 2025)), **PLAIN),
    "object": Question.of(**PLAIN, k_bar=60, mechanism=LimitedDomain(3, 60, 0.1, 1e-7)),
}


def golden(name: str, value: object) -> object:
    """What was written when the form was new."""
    path = HERE / name
    if os.environ.get("WRITE") == "golden" and not path.exists():
        path.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_fingerprints_of_questions_stay() -> None:
    told = {name: question.fingerprint() for name, question in QUESTIONS.items()}
    plain = json.loads(json.dumps(told))
    assert plain == golden("fingerprints.json", told)
    assert len({canonical(one) for one in plain.values()}) == len(QUESTIONS)


def test_equal_questions_have_equal_fingerprints_however_they_are_written() -> None:
    ways: list[Any] = [{"DE", "FR"}, ["FR", "DE"], ("DE", "FR")]
    told = [Question.of(**PLAIN, where=[("country", "In", way)]).fingerprint() for way in ways]
    assert told[0] == told[1] == told[2]


def test_a_files_fingerprint_is_its_path_and_when_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("user,place\n")
    os.utime(path, ns=(10**18, 10**18))
    told = FileSource(path).fingerprint()
    assert told == {"kind": "file", "path": str(path.resolve()), "version": str(10**18)}


def test_a_record_is_read_as_it_was_written() -> None:
    record: Any = golden("record.json", None)
    release = from_record(record)
    assert isinstance(release, Release)
    again = json.loads(json.dumps(to_record(release)))
    assert {name: again[name] for name in record} == record
    assert release.charge is not None
    assert release.charge.stored is False


def test_a_record_of_the_first_form_is_read() -> None:
    with sqlite3.connect(HERE / "ledger.db") as connection:
        answers = [json.loads(text) for (text,) in connection.execute("SELECT answer FROM answers")]
    connection.close()
    assert len(answers) == 12
    assert all("form" not in record for record in answers)
    for record in answers:
        assert from_record(record)


def test_what_the_ledger_writes_about_a_question(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("user,place\n" + "".join(f"u{n},park\n" for n in range(300)))
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("d", Flexible.of(epsilon=9, delta=1e-4), person="user")
    top_k(path, **PLAIN | {"mechanism": "limited-domain"}, ledger=ledger, dataset="d")
    reserved, settled = (entry.record for entry in ledger.history("d")[1:])
    ledger.close()
    assert set(reserved) == {"analyst", "asked", "cost", "question", "request", "reservation"}
    assert set(settled) == {"answer", "cost", "reservation", "symbols"}
    asked: Any = reserved["asked"]
    assert asked["source"] == FileSource(path).fingerprint()
    wanted = Question.of(**PLAIN | {"mechanism": "limited-domain"}).fingerprint()
    assert {name: asked[name] for name in wanted} == json.loads(json.dumps(wanted))
    assert reserved["question"] == digest(canonical(asked))
