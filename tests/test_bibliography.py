"""A paper that a page, a docstring or a comment names is in the bibliography."""

import re

import pytest

from pages import ROOT

SURNAME = r"[A-ZÀ-Þ][\w’-]+"
NAMED = re.compile(
    rf"({SURNAME})((?:, {SURNAME})*,? (?:&|and) {SURNAME}| et al\.)?,? \(?((?:19|20)\d\d)\b"
)
"""Bun & Steinke 2016, Hay et al. 2016, Mironov (2017)."""
NO_PAPERS = frozenset(("York", "November"))
"""What else stands before a year: New York 2019 is a dataset."""
SHORT = {"KOV": "Kairouz"}
ENTRIES = re.findall(r"^- .*$", (ROOT / "docs" / "bibliography.md").read_text("utf-8"), flags=re.M)
TEXTS = [
    path
    for path in [
        *ROOT.glob("*.md"),
        *(path for kind in ("md", "ipynb") for path in (ROOT / "docs").rglob(f"*.{kind}")),
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "experiments").rglob("*.py"),
    ]
    if path.name != "bibliography.md"
]


def missing(text: str) -> list[str]:
    """The papers of a text that no entry has: one that begins with their author, and their year."""
    whole = re.sub(r"\n[ #]*", " ", text)
    return [
        found[0]
        for found in NAMED.finditer(whole)
        if found[1] not in NO_PAPERS
        and not any(
            entry.startswith(f"- {SHORT.get(found[1], found[1])}")
            and re.search(rf"\b{found[3]}\b|arXiv:{found[3][2:]}", entry)
            for entry in ENTRIES
        )
    ]


def test_every_paper_that_is_named_is_in_the_bibliography() -> None:
    assert len(TEXTS) > 400
    found = {str(path): missing(path.read_text("utf-8")) for path in TEXTS}
    assert {path: papers for path, papers in found.items() if papers} == {}


@pytest.mark.parametrize("paper", ["Nobody & Else 2016", "Nobody et al. 2016", "Nobody (2016)"])
def test_a_paper_that_is_not_there_is_found(paper: str) -> None:
    assert missing(f"By {paper}, Theorem 2.") == [paper.removesuffix(")")]


def test_a_paper_of_another_year_is_found() -> None:
    assert missing("Bun & Steinke 2016") == []
    assert missing("Bun & Steinke 2017") == ["Bun & Steinke 2017"]
