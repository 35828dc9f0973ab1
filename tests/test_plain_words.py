"""Pages for readers: short paragraphs, and words that are explained where they come first."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULE = importlib.util.spec_from_file_location("glossary", ROOT / "docs" / "site" / "glossary.py")
assert MODULE
assert MODULE.loader
glossary = importlib.util.module_from_spec(MODULE)
MODULE.loader.exec_module(glossary)

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GENERATED = {"commands.md"}


@pytest.mark.parametrize("page", glossary.pages(), ids=lambda page: page.stem)
def test_words_are_linked_where_they_come_first(page: Path) -> None:
    missing = [anchor for anchor, _, _ in glossary.unlinked(page.read_text("utf-8"))]
    assert not missing, f"run python docs/site/glossary.py: {page.name} does not link {missing}"


def test_a_word_before_its_link_is_found() -> None:
    text = "Noise hides people. [Noise](glossary.md#noise) is random."
    assert [anchor for anchor, _, _ in glossary.unlinked(text)] == ["noise"]
    assert glossary.unlinked(glossary.linked("Noise and a ledger.", "glossary.md")) == []


def test_every_word_is_in_the_glossary() -> None:
    headings = re.findall(r"^### (.*)$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.M)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(glossary.WORDS) <= anchors


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in GENERATED], ids=lambda page: page.stem
)
def test_no_paragraph_is_long(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)", text)
    long = [(len(block.split()), block[:60]) for block in blocks if len(block.split()) > 120]
    assert not [entry for entry in long if not entry[1].lstrip().startswith("|")], long


PRIVATE = (
    r"(?:tell|tells|told)[^.|\n]{0,25} apart",
    r"\w+ persons apart",
    r"(?:repeats?|answer,?|question,?|refused) for nothing",
    r"not believed",
    r"even chance",
    r"dearer",
    r"lead over rank",
    r"apart by spaces",
    r"costs the symbols",
    r"NOTHING (?:came|comes)",
    r"covered them all",
    r"two persons to the",
    r"counts? as one standard",
)
"""What only its authors would say; the glossary has the words of the field."""
SHOWN = re.compile("|".join(PRIVATE), re.I)
TEXTS = [
    *PAGES,
    *(ROOT / "docs").rglob("*.ipynb"),
    *(ROOT / "docs" / "pictures").glob("*.svg"),
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "src").rglob("*.html"),
    *(ROOT / "src").rglob("*.js"),
]
"""Pages, pictures, receipts, errors, help, the service's pages, and the reference's docstrings."""


def test_no_private_language() -> None:
    assert len(TEXTS) > 400
    found = {str(path): SHOWN.findall(path.read_text("utf-8")) for path in TEXTS}
    assert {path: words for path, words in found.items() if words} == {}


def test_private_language_is_found() -> None:
    assert SHOWN.search("a column that tells persons apart")
