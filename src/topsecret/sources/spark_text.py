"""SQL for Spark that holds none of the caller's words.

Spark replaces ``${…}`` anywhere in a query's text, also inside quotes, by settings and
environment variables; it may read a quoted column name as a regular expression; and a setting
changes what a backslash in a literal means. So columns go by their position and text by a named
parameter, and what is sent is the same whatever a session's settings are.

>>> from sqlglot import parse_one
>>> text = "SELECT e.`a b` FROM v AS e WHERE e.`${x}` = '${HOME}'"
>>> numbered(parse_one(text, dialect="spark"), "e", ["a b", "${x}"])
('SELECT e.`c0` FROM v AS e WHERE e.`c1` = :v0', {'v0': '${HOME}'})
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from topsecret.errors import InvalidParameter

SparkGenerator: Any = Spark.Generator  # a nested class or a variable, by sqlglot's version


class BindingGenerator(SparkGenerator):  # type: ignore[misc]
    """Spark's SQL, with every text literal handed over beside it."""

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


def position(index: int) -> str:
    """What the column at this place is called in a query."""
    return f"c{index}"


def numbered(
    question: exp.Expression, table: str, columns: Sequence[str], *, pretty: bool = False
) -> tuple[str, dict[str, str]]:
    """The query's text and its values; columns of ``table`` are named by their places."""
    question = question.copy()
    for column in list(question.find_all(exp.Column)):
        if column.table == table:
            name = position(columns.index(column.name))
            column.set("this", exp.to_identifier(name, quoted=True))
    generator = BindingGenerator(pretty=pretty)
    text = generator.generate(question)
    if "${" in text:
        raise InvalidParameter("Spark would replace ${ in an expression; leave it out")
    return text, generator.values
