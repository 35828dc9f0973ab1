"""From an expression to the text that is sent: everything that was said is in it, or an error.

sqlglot leaves out an argument that a class does not know, and warns where a dialect lacks
something. Both would send another statement than the one that was proven: a ``LIMIT`` or a
``DISTINCT`` that is missing is no error to an engine.

>>> from sqlglot import exp
>>> rendered(exp.select("a").from_("t").limit(3), "duckdb")
'SELECT a FROM t LIMIT 3'
>>> rendered(exp.Limit(this=None, expression=exp.Literal.number(3), first=True), "duckdb")
Traceback (most recent call last):
topsecret.errors.DataIndependentFailure: the installed sqlglot ... does not know Limit.first; ...
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from sqlglot import ErrorLevel, errors, exp

from topsecret.errors import DataIndependentFailure
from topsecret.sources.sql import loaded_dialects  # noqa: F401

_STATEMENT = (
    'SELECT DISTINCT CAST("t"."a" AS TEXT) AS "x" FROM "t" WHERE NOT "t"."a" IS NULL '
    'AND "t"."b" = \'it\'\'s "so"\' GROUP BY "t"."a" ORDER BY "x" DESC{} LIMIT 3'
)
RELIED_ON = {
    "duckdb": _STATEMENT.format(""),
    "postgres": _STATEMENT.format(" NULLS LAST"),
    "sqlite": _STATEMENT.format(""),
}
"""One statement with the parts that privacy rests on, as each dialect must get it."""


def rendered(expression: exp.Expression, dialect: str, *, pretty: bool = False) -> str:
    """The statement's text, with every argument of every part in it."""
    check_arguments(expression)
    return _text(expression, dialect, pretty)


def check_arguments(expression: exp.Expression) -> None:
    """Every part knows every argument that it was given."""
    _check_once()
    for node in expression.walk():
        for name, value in node.args.items():
            if name not in node.arg_types and value is not None:
                raise _changed(f"does not know {type(node).__name__}.{name}")


def _text(expression: exp.Expression, dialect: str, pretty: bool) -> str:
    try:
        return expression.sql(dialect, pretty=pretty, unsupported_level=ErrorLevel.RAISE)
    except errors.UnsupportedError:
        pass  # raised below: its text may quote a value of a filter
    raise _changed(f"cannot write this question for {dialect}")


@cache
def _check_once() -> None:
    """The installed sqlglot writes what the tested ones wrote."""
    for dialect, wanted in RELIED_ON.items():
        if _text(_relied_on(), dialect, pretty=False) != wanted:
            raise _changed(f"writes other SQL for {dialect} than the versions that were tested")


def _relied_on() -> exp.Select:
    def quoted(name: str) -> exp.Identifier:
        return exp.to_identifier(name, quoted=True)

    a, b = (exp.column(quoted(name), quoted("t")) for name in "ab")
    text = exp.alias_(exp.cast(a.copy(), "text"), quoted("x"))
    return (
        exp.select(text)
        .distinct()
        .from_(exp.Table(this=quoted("t")))
        .where(a.copy().is_(exp.null()).not_())
        .where(b.eq(exp.Literal.string('it\'s "so"')))
        .group_by(a.copy())
        .order_by(exp.Ordered(this=exp.column(quoted("x")), desc=True, nulls_first=False))
        .limit(3)
    )


def _changed(what: str) -> DataIndependentFailure:
    return DataIndependentFailure(
        f"the installed sqlglot {version('sqlglot')} {what}; install a version that topsecret "
        "allows (pip install --upgrade topsecret)"
    )
