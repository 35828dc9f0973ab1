"""SQL for Spark that holds none of the caller's words.

Spark replaces ``${…}`` anywhere in a query's text, also inside quotes, by settings and
environment variables; it may read a quoted column name as a regular expression, and takes names
that differ in case for one; and a setting changes what a backslash in a literal means. So text
goes as a named parameter, and a name goes as it is only if it is plain. What is sent is the same
whatever a session's settings are.

>>> from sqlglot import parse_one
>>> text = "SELECT e.`a b` FROM v AS e WHERE e.place = '${HOME}'"
>>> worded(parse_one(text, dialect="spark"))
('SELECT e.`hex_612062` FROM v AS e WHERE e.place = :v0', {'v0': '${HOME}'})
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from topsecret.sources.sql.rendering import check_arguments

PLAIN = re.compile(r"(?!hex_)[a-z][a-z0-9_]*")

SparkGenerator: Any = Spark.Generator  # a nested class or a variable, by sqlglot's version


def plain(name: str) -> str:
    """A name of small letters, digits and underscores, another for every name.

    >>> [plain(name) for name in ("place", "Place", "hex_")]
    ['place', 'hex_506c616365', 'hex_6865785f']
    """
    return name if PLAIN.fullmatch(name) else "hex_" + name.encode("utf-8").hex()


class WordlessGenerator(SparkGenerator):  # type: ignore[misc]
    """Spark's SQL with plain names, and every text literal handed over beside it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(dialect="spark", **options)
        self.values: dict[str, str] = {}

    def literal_sql(self, expression: exp.Literal) -> str:
        """A parameter's name in the place of text; a number as it is."""
        if not expression.is_string:
            return str(super().literal_sql(expression))
        name = f"v{len(self.values)}"
        self.values[name] = expression.this
        return f":{name}"

    def identifier_sql(self, expression: exp.Identifier) -> str:
        """The plain name."""
        quoted = bool(expression.args.get("quoted"))
        return str(super().identifier_sql(exp.to_identifier(plain(expression.this), quoted=quoted)))


def worded(question: exp.Expression, *, pretty: bool = False) -> tuple[str, dict[str, str]]:
    """The query's text, and the values of its parameters."""
    check_arguments(question)
    generator = WordlessGenerator(pretty=pretty)
    text = generator.generate(question)
    return text, generator.values
