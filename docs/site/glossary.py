"""Links from the first use of a word on a page to the glossary.

`python docs/site/glossary.py` adds those that are missing; a test fails where one is.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = {
    "differential-privacy": r"differential(?:ly)? priva(?:cy|te)",
    "noise": r"noise",
    "privacy-budget": r"(?:privacy budgets?|(?<!metered )(?<!flexible )budgets?)",
    "metered-budget": r"metered budgets?",
    "flexible-budget": r"flexible budgets?",
    "allowance": r"allowances?",
    "ledger": r"ledgers?",
    "in-doubt": r"in doubt",
    "receipt": r"receipts?",
    "mechanism": r"mechanisms?",
    "pick": r"picks?",
    "threshold": r"thresholds?",
    "lead": r"(?:(?<=a )|(?<=the )|(?<=largest ))leads?",
    "public-domain": r"public domains?",
    "unknown-domain": r"unknown (?:domains?|items)",
    "recall": r"recall",
    "weighted-people": r"weighted people?",
    "cap": r"caps?",
    "sensitivity": r"sensitivity",
    "composition": r"composition",
    "neighbours": r"neighbours",
    "post-processing": r"post-processing",
    "zcdp": r"zCDP",
    "bounded-range": r"bounded[- ]range",
    "slack": r"slack",
    "epsilon": r"ε",
    "delta": r"δ",
}
"""Each anchor of the glossary that pages must link to, and how the word is written."""

EXACT = {"zcdp", "epsilon", "delta"}
"""Symbols: Δ is another one than δ."""

_SKIPPED = re.compile(
    r"^```.*?^```$|^#.*?$|^<!--.*?-->$|`[^`\n]+`|\$[^$\n]+\$|!?\[[^\]]*\]\([^)]*\)|<[^>\n]+>",
    re.M | re.S,
)


def pages() -> list[Path]:
    """The pages for readers: not generated ones, proofs, reference and results."""
    apart = {"glossary", "commands", "errors", "notation", "bibliography"}
    return [
        ROOT / "README.md",
        *sorted(page for page in (ROOT / "docs").glob("*.md") if page.stem not in apart),
    ]


def unlinked(text: str) -> list[tuple[str, int, int]]:
    """The words that are used on a page before, or without, a link: anchor, start and end."""
    prose = _SKIPPED.sub(lambda skipped: "\0" * len(skipped[0]), text)
    missing = []
    for anchor, word in WORDS.items():
        first = re.search(rf"(?<![\w^-]){word}(?![\w^-])", prose, 0 if anchor in EXACT else re.I)
        link = re.search(rf"glossary\.md#{anchor}\)", text)
        if first and not (link and link.start() < first.start()):
            missing.append((anchor, first.start(), first.end()))
    return missing


def linked(text: str, glossary: str) -> str:
    """The page with the missing links."""
    for anchor, start, end in sorted(unlinked(text), key=lambda use: -use[1]):
        text = f"{text[:start]}[{text[start:end]}]({glossary}#{anchor}){text[end:]}"
    return text


if __name__ == "__main__":
    for page in pages():
        glossary = "docs/glossary.md" if page.name == "README.md" else "glossary.md"
        page.write_text(linked(page.read_text("utf-8"), glossary), "utf-8")
