"""Docstrings as Markdown: doctests become code blocks, roles become code, lists become lists."""

from __future__ import annotations

import ast
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

SIGN = "&#124;"
"""A pipe that ends no cell of a table."""


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
    rows = [(name, *unwrapped(kind, words), default) for name, kind, default, words in rows]
    lines = [
        f"| `{name}` | {' '.join(words.split())} | {cell(kind)} | {cell(default) or 'required'} |"
        for name, kind, words, default in rows
    ]
    head = "| parameter | meaning | type | default |\n| --- | --- | --- | --- |"
    if not any(words for _, _, words, _ in rows):
        lines = [line.replace(" |  |", " |", 1) for line in lines]
        head = "| parameter | type | default |\n| --- | --- | --- |"
    return "\n\n" + "\n".join([head, *lines]) + "\n" if len(rows) > 1 else ""


def cell(code: Any) -> str:
    """An expression as code that may stand in a table.

    >>> cell("int | None")
    '<code>int &#124; None</code>'
    """
    return "" if code is None else f"<code>{escape(str(code)).replace('|', SIGN)}</code>"


def table(found: re.Match[str]) -> str:
    """A table that rules of equals signs frame, as one of pipes."""
    ends = [rule.end() for rule in re.finditer("=+", found[1])]
    rows = [
        [part.strip().replace("|", SIGN) for part in (line[: ends[0]], line[ends[0] :])]
        for line in found[0].splitlines()
        if not line.startswith("=")
    ]
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "| --- | --- |", *others]) + "\n"


def unwrapped(kind: Any, words: str) -> tuple[Any, str]:
    """A type, and what it means where an option of the command line says so beside it.

    >>> unwrapped("Annotated[int, typer.Option(help='How many.')]", "")
    ('int', 'How many.')
    """
    if not str(kind).startswith("Annotated["):
        return kind, words
    wrapped = ast.parse(str(kind), mode="eval").body.slice  # type: ignore[attr-defined]
    said = [
        word.value.value
        for word in ast.walk(wrapped)
        if isinstance(word, ast.keyword) and word.arg == "help"
        if isinstance(word.value, ast.Constant)
    ]
    return ast.unparse(wrapped.elts[0]), " ".join([words, *said]).strip()


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
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"^(=+ +=+)\n(?:.+\n)+?\1\n(?:.+\n)+?\1$\n?", table, text, flags=re.MULTILINE)
    text = re.sub(r"^::\n\n((?:(?: {4}.*)?\n)+)", literal, text, flags=re.MULTILINE)
    text = re.sub(
        r"^>>> (?:.+\n?)+", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text, flags=re.M
    )
    spaced: str = pages.spaced(pages.typeset(text))
    return spaced
