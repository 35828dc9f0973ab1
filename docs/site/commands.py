"""Writes docs/commands.md from the commands themselves: ``python docs/site/commands.py``."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from topsecret.cli.commands import app

WIDEST = 78
PAGE = Path(__file__).parents[1] / "commands.md"
BEGINNING = """\
# Commands

Written from the commands' own help; `--help` works everywhere, `--json` prints for machines. Each
is [a module of its own](reference/command-line.md).

| exit code | |
| --- | --- |
| 0 | answered |
| 1 | it ran, and something is wrong: a check failed (`verify`, `ledger check`, `service audit`, \
`doctor`), a list that was due had been cut short (`schedule run`), or the output's reader \
has left |
| 2 | a mistake or a refusal: one line on standard error that says the fix |
| 130 | interrupted |

| environment variable | |
| --- | --- |
| `TOPSECRET_LEDGER` | the ledger, where `--ledger` is not given: a file or `postgresql://…` |
| `TOPSECRET_MEMORY` | what DuckDB may use before it spills to disk: `2GB`, at least `16MB` |
| `TOPSECRET_SERVE_…` | the options of `topsecret serve`, say `TOPSECRET_SERVE_PORT` |
| `TOPSECRET_SERVICE` | how `topsecret serve` starts its worker processes; nobody else sets it |
| `TOPSECRET_SOURCES` | databases of `topsecret serve`, beside `--source`: `NAME=URL`, \
separated by spaces or newlines |
"""


def page() -> str:
    """The whole page."""
    program = typer.main.get_command(app)
    sections = [BEGINNING, *(section(path, command) for path, command in commands(program))]
    return "\n".join(sections)


def commands(group: Any, path: str = "topsecret") -> Iterator[tuple[str, Any]]:
    """Every command, groups before their members, with the words that call it."""
    yield path, group
    for name, command in sorted(getattr(group, "commands", {}).items()):
        yield from commands(command, f"{path} {name}")


def section(path: str, command: Any) -> str:
    """One command: what it does, examples, arguments and options."""
    examples, prose = [], []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        plain = re.sub(r"\[/?bold\]|\x08", "", paragraph).strip()
        lines = plain.splitlines()
        if lines and all(line.strip().startswith(("topsecret ", "#")) for line in lines):
            examples += [broken(line.strip()) for line in lines]
        elif re.match(r"topsecret \w+ .*--", " ".join(lines)):  # one command on several lines
            examples.append(broken(" ".join(line.strip() for line in lines)))
        elif plain:
            prose.append(marked(plain))
    parts = [f"## {path}", *prose]
    if not hasattr(command, "commands"):
        module = command.callback.__module__
        parts[-1] += f" Code: [`{module}`](reference/command-line.md#{module})."
    if examples:
        parts.append("\n".join(["```text", *examples, "```"]))
    rows = [row(parameter) for parameter in command.params if not parameter.hidden]
    if rows:
        heads = ["| | | default |", "| --- | --- | --- |"]
        if not any(cells[-1] for cells in rows):
            heads, rows = ["| | |", "| --- | --- |"], [cells[:-1] for cells in rows]
        parts.append("\n".join([*heads, *(f"| {' | '.join(cells)} |" for cells in rows)]))
    return "\n\n".join(parts) + "\n"


def broken(example: str) -> str:
    """A command on lines that fit the page, an option beside its value.

    >>> print(broken("topsecret top " + "x" * 60 + " --item place"))
    topsecret top xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx \\
      --item place
    """
    if example.startswith("#") or len(example) <= WIDEST:
        return example
    together = re.sub(r"(?<= )(--?[a-z][a-z-]*|GROUP|ORDER|LIMIT) (?!-)", "\\1\0", example)
    lines = textwrap.wrap(
        together,
        WIDEST - 2,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return " \\\n".join(lines).replace("\0", " ")


def row(parameter: Any) -> list[str]:
    """One argument or option: its name, its meaning, its default."""
    if parameter.param_type_name == "argument":
        name = f"`{parameter.name.upper()}`"
    else:
        name = ", ".join(f"`{word}`" for word in (*parameter.opts, *parameter.secondary_opts))
        if re.search(r"[^A-Z]", parameter.metavar or ""):  # the form of what is given
            name = f"{name.removesuffix('`')} {parameter.metavar}`"
    meaning = marked(parameter.help or "").replace("|", r"\|")
    return [name, meaning, default(parameter)]


def marked(text: str) -> str:
    """A text in one line, its options and environment variables as code.

    >>> marked("With --soft or\\n--k-bar, or TOPSECRET_LEDGER.")
    'With `--soft` or `--k-bar`, or `TOPSECRET_LEDGER`.'
    """
    words = r"(?<![\w`-])(--[a-z][a-z-]*[a-z]|TOPSECRET_[A-Z_]+)"
    return re.sub(words, r"`\g<0>`", " ".join(text.split()))


def default(parameter: Any) -> str:
    """What is taken when nothing is given."""
    shown = getattr(parameter, "show_default", None)
    if parameter.required:
        return "required"
    if isinstance(shown, str):  # words, or what could be given
        return f"`{shown}`" if re.fullmatch(r"[\d.e-]+|private", shown) else shown
    value = parameter.default
    if value is None or value is False or callable(value) or value in ([], (), ""):
        return ""
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
