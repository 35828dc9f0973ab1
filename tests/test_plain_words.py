"""Pages for readers: short paragraphs, words that are explained, numbers that a test holds."""

import ast
import importlib.util
import json
import re
from pathlib import Path

import pytest

from pages import LONGEST_PARAGRAPH, ROOT, UNLINKED, long_paragraphs

MODULE = importlib.util.spec_from_file_location("glossary", ROOT / "docs" / "site" / "glossary.py")
assert MODULE
assert MODULE.loader
glossary = importlib.util.module_from_spec(MODULE)
MODULE.loader.exec_module(glossary)

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


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


def test_words_in_tables_are_linked_and_those_in_formulas_are_not() -> None:
    assert [anchor for anchor, _, _ in glossary.unlinked("| noise | a cap |\n")] == ["noise", "cap"]
    assert glossary.unlinked("At $2ε$ and $(1 + e^ε)·δ$.") == []


def test_a_flexible_budget_is_one_word() -> None:
    assert [anchor for anchor, _, _ in glossary.unlinked("A flexible budget.")] == [
        "flexible-budget"
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_paragraph_is_long(page: Path) -> None:
    assert long_paragraphs(page.read_text("utf-8")) == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_no_paragraph_of_a_tutorial_is_long(notebook: Path) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    told = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert [long for text in told for long in long_paragraphs(text)] == []


def test_a_long_paragraph_is_found() -> None:
    long = " ".join(["word"] * (LONGEST_PARAGRAPH + 1))
    assert long_paragraphs(f"Short.\n\n{long}\n\n- {long}\n") == [
        "word " * 12,
        "- " + "word " * 11 + "wor",
    ]
    assert long_paragraphs(f"| {long} |\n\n```\n{long}\n```\n") == []


PRIVATE = (
    r"(?:tell|tells|told)[^.|\n]{0,25} apart",
    r"\w+ (?:people|persons) apart",
    r"(?:repeats?|answer,?|question,?|refused) for nothing",
    r"not believed",
    r"even chance",
    r"dear(?:er|est)",
    r"lead over rank",
    r"apart by spaces",
    r"costs the symbols",
    r"NOTHING (?:came|comes)",
    r"covered them all",
    r"two (?:people|persons) to the",
    r"counts? as one standard",
    r"data[ -]sets?",  # a dataset
    r"\basks? the data\b",
    r"\bhold (?:many|few) things",
    r"(?:[.;:] |\*\* )Who (?:guesses|restores|sends|asks|has) [^?]{0,60}(?:[,.;] | is )",
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
    *(ROOT / "experiments").glob("*.py"),
]
"""Pages, pictures, receipts, errors, help, the service's pages, and the reference's docstrings."""


def test_no_private_language() -> None:
    assert len(TEXTS) > 400
    found = {str(path): SHOWN.findall(path.read_text("utf-8")) for path in TEXTS}
    assert {path: words for path, words in found.items() if words} == {}


def test_private_language_is_found() -> None:
    assert SHOWN.search("a column that tells persons apart")
    assert SHOWN.search("the data set's budget")
    assert SHOWN.search(
        "It is safe. Who guesses from the answer, is right at most half of the time."
    )


GIVEN = re.compile(
    r"""
    \$\$[^$]*\$\$ | \$[^$\n]*\$ | `[^`\n]*` | \]\([^)\n]*\)            # formulas, code, addresses
    | (?<!\w)(?:[εδknmT]|k̄)\ [=<≤>≥]\ -?[\d.·⁻⁰¹²³⁴⁵⁶⁷⁸⁹/n]+           # at which setting
    | (?:k|k̄)\ \+\ 1\b | 1/\(8s²\) | δ\ above\ 0 | j\^\(−exponent\)
    | (?:&\ \w+|in|of)\ (?:19|20)\d\d\b | November\ 2026              # years
    | (?:Python|Debian|PySpark|Java|PostgreSQL|version|step|Algorithm)\ \d[\d.]*
    | \(3\.11\ or\ newer\) | Apache-2\.0 | UTF-\d+ | SHA-\d+ | 95%      # names
    | \(409\) | a\ 503\b | U\+\d+
    | ^\d\.\                                                            # the number of a step
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Numbers that nothing could make stale."""

EXAMPLES = {
    "docs/choosing.md": (
        "say 1 per quarter",
        "keeps those that can be said to have 1,000 people",
        "With a cap of 1 (",
        "With a million people take 10⁻⁸ or less",
        "the one of rank 1,601 alone",
        "and over rank 1,601 alone",
    ),
    "docs/glossary.md": ("1 is a common choice", "For a count it is 1."),
    "docs/guarantee.md": (
        "Values up to 1 are strong, values of a few are usual in practice, and beyond 5",
    ),
    "docs/measures.md": (
        "at most 3 visits of a person count for a place, at most 200 minutes",
        "a household buys for some 100 a month",
        "A bound of 1 is a list by people",
        "A value below 0, NULL",
        "counts as 0",
        "the noise is for a move of 2",
    ),
    "docs/pate.md": ("if the last column says 0%",),
    "docs/ranking.md": ("(0 if some never met)",),
    "docs/series.md": ("are 4 to 10 standard deviations of its",),
    "docs/service.md": ("keeps values whose bound is at least 100;",),
    "docs/sources.md": (
        "1.00 of PostgreSQL's `numeric` is 1, -0 of a float in DuckDB is 0",
        "in SQLite (1 and 1.0 are one in the latter two)",
        "not floats (0 and -0)",
        "literal places from 0 on",
        "outside the years 1 to 9999",
        "the salt as 32 hexadecimal digits",
        "changes at most Δ counts, by 1 each",
        "by hand, 100,000 to 100 million rows",
    ),
    "docs/tested-top-k.md": ("half of the time and 98% of it",),
    "docs/threats.md": ("a time of day outside 0 to 24 hours",),
    "docs/sql.md": ("multiples of the unit, 1 unless said",),
}
"""What the writer chose, what is so by definition, and rules of thumb."""

HOLDING = (
    "test_numbers.py",
    "test_stated_numbers.py",
    "test_demo.py",
    "ranking/test_strength.py",
)
NUMBER = re.compile(r"(?<![\w.⁻₀-₉-])\.?\d[\d,.]*")


def templates() -> list[re.Pattern[str]]:
    """Every text that these files look for in a page; what is worked out stands for one word."""
    found = []
    for file in HOLDING:
        for node in ast.walk(ast.parse((ROOT / "tests" / file).read_text("utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [getattr(part, "value", "") for part in parts]
            words = [text if isinstance(text, str) else "" for text in texts]
            if isinstance(node, ast.JoinedStr | ast.Constant) and len("".join(words)) > 12:
                found.append(re.compile("".join(re.escape(word) or r"[^\s|]+?" for word in words)))
    return found


def unheld(name: str, held: list[re.Pattern[str]]) -> list[str]:
    """The numbers in a page's sentences that no test holds, with what stands around them."""
    text = re.sub(r"^```.*?^```$|^[#|].*?$|^  \|.*?$", "", UNLINKED[name], flags=re.M | re.S)
    covered = [found.span() for found in GIVEN.finditer(text)]
    covered += [found.span() for pattern in held for found in pattern.finditer(text)]
    for example in EXAMPLES.get(name, ()):
        assert example in text, f"{name} no longer says {example!r}"
        covered += [found.span() for found in re.finditer(re.escape(example), text)]
    return [
        text[max(0, found.start() - 40) : found.end() + 30]
        for found in NUMBER.finditer(text)
        if not any(start <= found.start() < end for start, end in covered)
    ]


APART = {"commands", "errors", "bibliography"}
"""Written by a program, or a list of titles."""
FOR_READERS = sorted(
    name
    for name in UNLINKED
    if name == "README.md" or (name.count("/") == 1 and Path(name).stem not in APART)
)


def test_every_number_in_a_sentence_is_held() -> None:
    """Where it fails, let test_stated_numbers.py look for the sentence with the code's number."""
    held = templates()
    assert {name: found for name in FOR_READERS if (found := unheld(name, held))} == {}


def test_a_number_that_nobody_holds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UNLINKED, "a new page", "At ε = 1 it takes 17 seconds, `k=3`.")
    [found] = unheld("a new page", templates())
    assert "takes 17 seconds" in found
