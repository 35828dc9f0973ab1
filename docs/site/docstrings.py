"""Docstrings as Markdown: doctests become code blocks, roles become code, lists become lists."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from html import escape
from pathlib import Path
from typing import Any

import griffe

_FOUND = importlib.util.spec_from_file_location("pages", Path(__file__).with_name("pages.py"))
assert _FOUND is not None
assert _FOUND.loader is not None
pages = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(pages)


class Docstrings(griffe.Extension):
    """Rewrites every docstring that is shown."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.is_alias or not obj.docstring:
            return
        obj.docstring.value = markdown(obj.docstring.value) + parameters(obj)


def parameters(obj: Any) -> str:
    """A table of what a function, or a frozen dataclass, takes; nothing for one parameter."""
    if obj.is_function:
        rows = [
            (one.name, one.annotation, one.default, "")
            for one in obj.parameters
            if one.name not in ("self", "cls") and not one.name.startswith("_")
            if "Unpack" not in str(one.annotation)  # docs/reference/package.md has a table of them
        ]
    elif obj.is_class and any("dataclass" in str(one.value) for one in obj.decorators):
        rows = [
            (name, one.annotation, one.value, one.docstring.value if one.docstring else "")
            for name, one in obj.members.items()
            if not one.is_alias and one.is_attribute and "instance-attribute" in one.labels
            if not name.startswith("_") and "property" not in one.labels
        ]
    else:
        return ""
    lines = [
        f"| `{name}` | {' '.join(words.split())} | {cell(kind)} | {cell(default) or 'needed'} |"
        for name, kind, default, words in rows
    ]
    head = "| parameter | meaning | type | default |\n| --- | --- | --- | --- |"
    if not any(words for *_, words in rows):
        lines = [line.replace(" |  |", " |", 1) for line in lines]
        head = "| parameter | type | default |\n| --- | --- | --- |"
    return "\n\n" + "\n".join([head, *lines]) + "\n" if len(rows) > 1 else ""


def cell(code: Any) -> str:
    """An expression as code that may stand in a table.

    >>> cell("int | None")
    '<code>int &#124; None</code>'
    """
    return "" if code is None else f"<code>{escape(str(code)).replace('|', '&#124;')}</code>"


def literal(found: re.Match[str]) -> str:
    """An indented block after a pair of colons, as a code block."""
    return f"```text\n{textwrap.dedent(found[1])}```\n\n"


def markdown(text: str) -> str:
    """The same docstring, as Markdown.

    >>> markdown(">>> 1 + 1\\n2\\n")
    '```pycon\\n>>> 1 + 1\\n2\\n```\\n'
    >>> markdown("See :class:`~a.B` and ``c``.")
    'See `B` and `c`.'
    """
    text = re.sub(r":\w+:`~?([\w.]+)`", lambda found: f"`{found[1].split('.')[-1]}`", text)
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    text = re.sub(r"^::\n\n((?:(?: {4}.*)?\n)+)", literal, text, flags=re.MULTILINE)
    text = re.sub(
        r"^>>> (?:.+\n?)+", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text, flags=re.M
    )
    spaced: str = pages.spaced(pages.typeset(text))
    return spaced
