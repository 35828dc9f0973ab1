"""The pages that users read, and the code in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
UNLINKED = {
    name: re.sub(r"\[([^]]*)\]\((?:docs/)?glossary\.md#[\w-]+\)", r"\1", text)
    for name, text in PAGES.items()
}
"""Without the links to the glossary, which stand in the middle of sentences."""


def blocks(language: str, page: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """The topsecret commands of a page's shell blocks."""
    lines = "".join(blocks("sh", page)).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("topsecret")]


LONGEST_PARAGRAPH = 120


def long_paragraphs(text: str) -> list[str]:
    """How the paragraphs and list entries begin that have too many words; no code, no tables."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)", text)
    prose = [block for block in blocks if not block.lstrip().startswith("|")]
    return [block[:60] for block in prose if len(block.split()) > LONGEST_PARAGRAPH]
