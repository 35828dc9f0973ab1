"""Every refusal of a pasted query says what to do instead."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import topsecret.sources.relations
from topsecret.errors import QueryRefused
from topsecret.sources.relations.rebuild import parsed

FOLDER = Path(topsecret.sources.relations.__file__).parent
STEP = re.compile(
    r"\b(add|ask|cast|change|check|compare|correct|count|cut|drop|flatten|give|group|join|keep|leave|list|"
    r"make|mend|must|name|need|needs|omit|once|pass|put|rank|say|select|shorten|show|use|write)\b",
    re.IGNORECASE,
)
"""What a caller can do, or the rule that the text must follow."""
WORDED_ELSEWHERE = ("{refused}", "{text}{hint}", "LIMITED", "why")
"""Texts that are put together from others, which name the step."""


def test_every_refusal_names_a_next_step() -> None:
    seen, silent = 0, []
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "QueryRefused":
                continue
            seen += 1
            # Words in braces are the caller's own; only ours count.
            ours = " ".join(
                part.value
                for part in ast.walk(node.args[1])
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            text = ast.unparse(node.args[1])
            if not STEP.search(ours) and not any(one in text for one in WORDED_ELSEWHERE):
                silent.append(f"{path.name}:{node.lineno}: {text}")
    assert seen > 90
    assert silent == []


@pytest.mark.parametrize("query", ["EXPLAIN SELECT place FROM t", "SHOW TABLES", "VACUUM"])
def test_what_is_no_query_is_refused_as_such(query: str) -> None:
    with pytest.raises(QueryRefused, match="ask a query that begins with SELECT or WITH"):
        parsed(query, "duckdb")
