"""Examples of the reference that can be copied: what they use of their module is imported first."""

from __future__ import annotations

import ast
import builtins
import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^```pycon\n(.*?)^```", re.M | re.S)


class Examples(griffe.Extension):
    """Completes the examples of every docstring that is shown."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for every module, class, function and attribute when all is read."""
        if not obj.is_alias and obj.docstring:
            origins = {
                name: one.target_path if one.is_alias else one.path
                for name, one in obj.module.members.items()
            }
            obj.docstring.value = with_imports(obj.docstring.value, origins)


def with_imports(text: str, origins: dict[str, str]) -> str:
    """The same docstring, its first example after the imports that all of them need.

    >>> origins = {"Loss": "topsecret.loss.Loss", "np": "numpy", "arb": "flint.arb"}
    >>> with_imports("```pycon\\n>>> Loss(np.ones(1))\\n```", origins).splitlines()[1:3]
    ['>>> import numpy as np', '>>> from topsecret.loss import Loss']
    """
    needed = sorted(used(text) & origins.keys())
    lines = sorted({imported(name, origins[name]) for name in needed}, key=from_last)
    start = "".join(f">>> {line}\n" for line in lines)
    return EXAMPLE.sub(lambda found: f"```pycon\n{start}{found[1]}```", text, count=1)


def used(text: str) -> set[str]:
    """The names that the examples use and do not make."""
    lines = "\n".join(EXAMPLE.findall(text)).splitlines()
    code = "\n".join(line[4:] for line in lines if line.startswith((">>>", "...")))
    loaded, made = set(), set(vars(builtins))
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
        elif isinstance(node, ast.alias):
            made.add(node.asname or node.name.partition(".")[0])
    return loaded - made


def imported(name: str, origin: str) -> str:
    """The statement that imports something by a name.

    >>> imported("np", "numpy"), imported("Loss", "topsecret.loss.Loss")
    ('import numpy as np', 'from topsecret.loss import Loss')
    """
    module, _, own = origin.rpartition(".")
    given = own if own == name else f"{own} as {name}"
    return f"from {module} import {given}" if module else f"import {given}"


def from_last(line: str) -> tuple[bool, str]:
    """Whole modules before what is taken from one."""
    return line.startswith("from"), line
