"""A plain text file of public items, one per line."""

from __future__ import annotations

from pathlib import Path

from topsecret.errors import DataIndependentFailure

PLAIN = {".txt", ".list", ""}
"""Suffixes of files with one item per line."""


def is_plain(path: Path) -> bool:
    """Whether the file has one item per line, by its suffix."""
    return path.suffix.lower() in PLAIN


def plain_items(path: Path) -> list[str]:
    """The lines of the file without those that are empty, each once."""
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        text = ""
    lines = dict.fromkeys(line for line in text.splitlines() if line)
    if not lines:
        raise DataIndependentFailure(
            f"the domain {path} cannot be read or is empty; it needs one item per line, in UTF-8"
        )
    return list(lines)
