"""The one aggregation, written once as an expression and rendered for an engine's dialect.

Nothing is pasted together as text: identifiers are always quoted and values are literals that
sqlglot escapes, so a column named ``x"; drop table y; --`` is a column.

>>> from topsecret.sources import CountQuery
>>> query = leading_counts(exp.to_table("checkins"), CountQuery("place", "user", rows=3))
>>> print(query.sql("duckdb", pretty=True))
SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    "events"."place" AS "item",
    "events"."user" AS "person"
  FROM checkins AS "events"
  WHERE
    NOT "events"."place" IS NULL AND NOT "events"."user" IS NULL
) AS "pairs"
GROUP BY
  "pairs"."item"
ORDER BY
  "persons" DESC,
  "pairs"."item" ASC
LIMIT 3
"""

from __future__ import annotations

from sqlglot import exp

from topsecret.sources.source import CountQuery


def column(name: str, table: str) -> exp.Column:
    """A column of this exact name, whatever characters it holds.

    Always qualified: an engine may let ``item`` mean an alias of the same select instead.
    """
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True))


def leading_counts(
    table: exp.Expression, query: CountQuery, *, item_as_text: bool = False
) -> exp.Select:
    """Rank the items of ``table`` by their number of distinct persons.

    The distinct pairs are formed first and counted after: exact, and in DuckDB as fast as
    ``count(DISTINCT …)`` (2.3 s both on 20 million rows, 2 cores), and other engines spread it
    over their workers. Equal counts are ordered by the item.
    """
    item: exp.Expression = column(query.item, "events")
    if item_as_text:
        item = exp.cast(item, exp.DataType.Type.VARCHAR)
    pairs = (
        exp.select(
            exp.alias_(item, "item", quoted=True),
            exp.alias_(column(query.person, "events"), "person", quoted=True),
        )
        .distinct()
        .from_(exp.alias_(table, "events", table=True, quoted=True))
        .where(_present(query.item), _present(query.person))
    )
    persons = exp.alias_(exp.Count(this=exp.Star()), "persons", quoted=True)
    return (
        exp.select(column("item", "pairs"), persons)
        .from_(exp.alias_(pairs.subquery(), "pairs", table=True, quoted=True))
        .group_by(column("item", "pairs"))
        .order_by(
            exp.Ordered(this=persons.args["alias"].copy(), desc=True),
            exp.Ordered(this=column("item", "pairs"), desc=False),
        )
        .limit(query.rows)
    )


def _present(name: str) -> exp.Expression:
    return exp.not_(exp.Is(this=column(name, "events"), expression=exp.null()))


def call(function: str, path: str, **options: exp.Expression) -> exp.Table:
    """A table function over one file, with named options: ``READ_CSV('path', header = TRUE)``."""
    named: list[exp.Expression] = [
        exp.EQ(this=exp.var(name), expression=value) for name, value in options.items()
    ]
    arguments = [exp.Literal.string(path), *named]
    return exp.Table(this=exp.Anonymous(this=function, expressions=arguments))


def record(fields: dict[str, str]) -> exp.Struct:
    """A struct literal ``{'name': 'value', …}``."""
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.Literal.string(name), expression=exp.Literal.string(value))
            for name, value in fields.items()
        ]
    )
