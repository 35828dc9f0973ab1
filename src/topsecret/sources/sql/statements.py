"""The one aggregation, written once as an expression and rendered for an engine's dialect.

Nothing is pasted together as text: identifiers are always quoted and values are literals that
sqlglot escapes, so a column named ``x"; drop table y; --`` is a column.

>>> from topsecret.sources import CountQuery
>>> schema: Schema = {"place": "text", "user": "integer"}
>>> query = CountQuery("place", "user", rows=3)
>>> print(leading_counts(table("checkins"), query, schema, "postgres").sql("postgres", pretty=True))
SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    CAST("events"."place" AS TEXT) COLLATE "C" AS "item",
    "events"."user" AS "person"
  FROM "checkins" AS "events"
  WHERE
    NOT "events"."place" IS NULL AND NOT "events"."user" IS NULL
) AS "pairs"
GROUP BY
  "pairs"."item"
ORDER BY
  "persons" DESC,
  "pairs"."item" ASC
LIMIT 3

One step may stand between the distinct pairs and the counting, a function of one person's own
pairs and the salt: the *cap* keeps at most Δ items of each person, those that come first in the
order of ``md5(salt, length of person, person, length of item, item)``. Groups are in
``sql.groups``. With another measure than people each pair carries an *amount*, which is clipped
there and summed in place of the count (``sql.amounts``); the score is called "persons" then, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from topsecret.errors import DataIndependentFailure, InvalidParameter
from topsecret.sources.domains.domain import Interval
from topsecret.sources.measures import Measure
from topsecret.sources.source import Columns, CountQuery, Kind, Schema
from topsecret.sources.sql.amounts import clipped, row_amount, score_names, totals
from topsecret.sources.sql.conditions import Expression
from topsecret.sources.sql.dialects import (
    ascending,
    counted,
    descending,
    digest,
    person,
    readable,
    tries,
    truth_text,
    try_cast,
    unmarked,
    without_zeros,
)
from topsecret.sources.sql.expressions import is_whole
from topsecret.sources.sql.filters import holds, rebuilt

EVENTS = "events"


def column(name: str, table: str) -> exp.Column:
    """A column of this exact name, whatever characters it holds.

    Always qualified: an engine may let ``item`` mean an alias of the same select instead.
    """
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True))


def table(*parts: str) -> exp.Table:
    """A table by its name, with its schema and catalogue in front of it if given."""
    quoted = [exp.to_identifier(part, quoted=True) for part in parts]
    names = dict(zip(("this", "db", "catalog"), reversed(quoted), strict=False))
    return exp.Table(**names)


def item_names(query: CountQuery) -> list[str]:
    """What the item's columns are called in the statements."""
    number = len(query.item_columns)
    return ["item"] if number == 1 else [f"item_{place}" for place in range(1, number + 1)]


def leading_counts(
    events: exp.Expression, query: CountQuery, schema: Schema, dialect: str = "duckdb"
) -> exp.Select:
    """Rank the items of ``events`` by their number of distinct people: (item, …, persons).

    Render it with ``.sql(dialect)`` for the same dialect. ``schema`` says what the columns hold.
    """
    counts = item_counts(events, query, schema, dialect)
    source = "pairs" if query.max_items is None else "choices"
    persons = exp.to_identifier("persons", quoted=True)
    items = [column(name, source) for name in item_names(query)]
    counts.set("order", exp.Order(expressions=ranking(persons, items, dialect)))
    return counts.limit(query.rows, copy=False)


def ranking(
    persons: exp.Expression, items: Sequence[exp.Expression], dialect: str
) -> list[exp.Ordered]:
    """Largest count first, equal counts by the item's own order."""
    return [descending(persons, dialect), *(ascending(item.copy(), dialect) for item in items)]


def item_counts(
    events: exp.Expression,
    query: CountQuery,
    schema: Schema,
    dialect: str,
    members: exp.Expression | None = None,
) -> exp.Select:
    """Every item with its number of distinct people, in no order: (item, …, persons).

    The distinct pairs are formed first and counted after: in DuckDB as fast as
    ``count(DISTINCT …)``, and other engines spread it. ``members``: the items of a public domain.
    """
    kept = person_items(events, query, schema, dialect, members)
    return counted_pairs(kept, query, schema, dialect)


def counted_pairs(
    kept: exp.Select, query: CountQuery, schema: Schema, dialect: str, more: Sequence[str] = ()
) -> exp.Select:
    """The number of people of each item among pairs that are distinct, cut down to the cap.

    ``more`` are columns that the person decides, by which the counts are separate, too.
    """
    names = [*more, *item_names(query)]
    measure = query.measure
    if query.max_items is None:
        return _grouped(kept, names, "pairs", measure)
    more = more if measure is None else [*more, "amount"]
    within = exp.LTE(
        this=column("choice", "choices"), expression=exp.Literal.number(query.max_items)
    )
    numbered = numbered_pairs(kept, query, schema, dialect, more)
    return _grouped(numbered, names, "choices", measure).where(within, copy=False)


def person_items(
    events: exp.Expression,
    query: CountQuery,
    schema: Schema,
    dialect: str,
    members: exp.Expression | None = None,
) -> exp.Select:
    """The distinct pairs (item, …, person) that count, before any cap."""
    kept = pairs(events, query, schema, dialect)
    if members is None:
        return kept
    more = [] if query.measure is None else ["amount"]
    return members_only(kept, item_names(query), members, more)


def number_of_persons(
    events: exp.Expression, query: CountQuery, schema: Schema, dialect: str
) -> exp.Select:
    """How many distinct people have an item that counts, or could: one row, one number.

    *Guarantee.* It moves whenever a count of the query does: everybody who is in a count has a pair
    here. A public list of items does not narrow it, which is allowed. Groups that each person is in
    one of have ``persons_by_group``.
    """
    rows = derived(pairs(events, query, schema, dialect), "pairs")
    everybody = exp.select(column("person", "pairs")).distinct().from_(rows)
    return exp.select(named(exp.Count(this=exp.Star()), "persons")).from_(
        derived(everybody, "everybody")
    )


def derived(select: exp.Select, name: str) -> Any:  # sqlglot's own classes differ by version
    """A select as a table of this name. The select itself, since copies take most of the time."""
    return exp.alias_(select.subquery(copy=False), name, table=True, quoted=True, copy=False)


def named(value: exp.Expression, name: str) -> Any:
    """``value AS "name"``."""
    return exp.alias_(value, name, quoted=True, copy=False)


def _grouped(
    rows: exp.Select, names: Sequence[str], source: str, measure: Measure | None
) -> exp.Select:
    items = [column(name, source) for name in names]
    found = totals(measure, column("amount", source)) if measure else [exp.Count(this=exp.Star())]
    scores = [named(one, name) for one, name in zip(found, score_names(measure), strict=True)]
    counts = exp.select(*items, *scores, copy=False).from_(derived(rows, source), copy=False)
    return counts.group_by(*(item.copy() for item in items), copy=False)


def pairs(events: exp.Expression, query: CountQuery, schema: Schema, dialect: str) -> exp.Select:
    """The distinct pairs of person and item in the rows that count, with what each amounts to."""
    return per_person(event_rows(events, query, schema, dialect), query)


def per_person(rows: exp.Select, query: CountQuery, more: Sequence[str] = ()) -> exp.Select:
    """The distinct pairs of some rows, separate by ``more``, too; each with its amount, if any.

    A pair that amounts to nothing is left out: its item was not observed.
    """
    if query.measure is None:
        return rows.distinct(copy=False)
    names = [column(name, "rows") for name in (*item_names(query), "person", *more)]
    amount = clipped(query.measure, column("amount", "rows"))
    kept: Any = exp.select(*names, named(amount, "amount")).from_(derived(rows, "rows"))
    kept = kept.group_by(*(name.copy() for name in names))
    if query.measure.column is not None:
        some = exp.Sum(this=column("amount", "rows"))
        kept = kept.having(exp.GT(this=some, expression=exp.Literal.number(0)))
    return kept  # type: ignore[no-any-return]  # sqlglot's own classes differ by version


def event_rows(
    events: exp.Expression,
    query: CountQuery,
    schema: Schema,
    dialect: str,
    more: Sequence[exp.Expression] = (),
) -> exp.Select:
    """Item, person and amount of the rows that count, with ``more`` of each row; not distinct."""
    shown, needed = [], []
    for part, name in zip(query.item_columns, item_names(query), strict=True):
        value, required = _value(part, query, schema, dialect)
        shown.append(named(value, name))
        needed += required
    who = column(query.person, EVENTS)
    shown.append(named(person_of(who, query.person, schema, dialect), "person"))
    needed.append(_present(who.copy()))
    measure = query.measure
    if measure is not None and measure.column is not None:
        value = column(measure.column, EVENTS)
        shown.append(named(row_amount(measure, value, schema, dialect), "amount"))
    return (
        exp.select(*shown, *more, copy=False)
        .from_(exp.alias_(events, EVENTS, table=True, quoted=True), copy=False)
        .where(*needed, *holds(query.where, schema, dialect), copy=False)
    )


def person_of(who: exp.Expression, name: str, schema: Schema, dialect: str) -> exp.Expression:
    """The value that identifies a person, if the column's type has one."""
    if isinstance(schema, Columns):
        if name in schema.unclear:
            raise DataIndependentFailure(
                f"the column {name!r} cannot identify people: values of its type may be equal "
                "and yet be written differently; make a view with text or whole numbers"
            )
        if name in schema.zeros:
            who = without_zeros(who, dialect)
    return person(who, schema[name], dialect)


def _value(
    part: str | Expression, query: CountQuery, schema: Schema, dialect: str
) -> tuple[exp.Expression, list[exp.Expression]]:
    """An item's value as it is counted, and what must hold for it to count."""
    if isinstance(query.domain, Interval):
        return _whole(part, query.domain, schema, dialect)
    if isinstance(part, str):
        raw: exp.Expression = column(part, EVENTS)
        return readable(raw, schema[part], dialect), [_present(raw.copy())]
    typed = rebuilt(part, schema, dialect)
    raw = typed.node
    if is_whole(part.tree):
        return exp.cast(raw, exp.DataType.Type.BIGINT), [_present(raw.copy())]
    if typed.sort == "boolean" and dialect == "sqlite":
        return truth_text(exp.paren(raw)), [_present(exp.paren(raw.copy()))]
    kind: Kind = "timestamp" if (typed.sort, dialect) == ("timestamp", "duckdb") else "other"
    return readable(raw, kind, dialect), [_present(exp.paren(raw.copy()))]


def _whole(
    part: str | Expression, domain: Interval, schema: Schema, dialect: str
) -> tuple[exp.Expression, list[exp.Expression]]:
    """A whole number of the interval. Text counts if it is the number's usual text."""
    value: exp.Expression
    required: list[exp.Expression] = []
    if isinstance(part, Expression) and is_whole(part.tree):
        value = exp.cast(rebuilt(part, schema, dialect).node, exp.DataType.Type.BIGINT)
    elif isinstance(part, str) and schema[part] == "integer":
        value = counted(column(part, EVENTS), "integer", dialect)
        if tries(dialect):  # some have integers of 128 bits, which compare with none of 64
            value = try_cast(column(part, EVENTS), "BIGINT")
    elif isinstance(part, str) and schema[part] == "text" and tries(dialect):
        value = try_cast(column(part, EVENTS), "BIGINT")
        back = exp.cast(value.copy(), exp.DataType.Type.TEXT)
        required.append(exp.EQ(this=back, expression=column(part, EVENTS)))
    else:
        raise InvalidParameter(
            f"domain=range(…) needs an item of whole numbers, and {part!r} is not; "
            "list the items instead"
        )
    low, high = exp.Literal.number(domain.low), exp.Literal.number(domain.high)
    required.insert(0, exp.Between(this=value.copy(), low=low, high=high))
    if domain.size == 2:  # its step may be too large for an engine's integers
        required.append(exp.In(this=value.copy(), expressions=[low.copy(), high.copy()]))
    elif domain.size > 2 and domain.step > 1:
        # A rest cannot overflow the column's type, as a difference could for a row's value. Of a
        # negative number it is negative on most engines.
        rest = exp.Mod(this=value.copy(), expression=exp.Literal.number(domain.step))
        first = domain.low % domain.step
        rests = [exp.convert(first), exp.convert(first - domain.step)]
        required.append(exp.In(this=rest, expressions=rests))
    return value, required


def members_only(
    kept: exp.Select, names: Sequence[str], members: exp.Expression, more: Sequence[str] = ()
) -> exp.Select:
    """The pairs whose item belongs to the domain."""
    shown = [column(name, "pairs") for name in (*names, "person", *more)]
    same = [exp.EQ(this=column(n, "members"), expression=column(n, "pairs")) for n in names]
    inside = (
        exp.select(exp.Literal.number(1))
        .from_(exp.alias_(members.copy(), "members", table=True, quoted=True))
        .where(*same)
    )
    inner = exp.select(*shown, copy=False).from_(derived(kept, "pairs"), copy=False)
    return inner.where(exp.Exists(this=inside), copy=False)


def numbered_pairs(
    kept: exp.Select, query: CountQuery, schema: Schema, dialect: str, more: Sequence[str]
) -> exp.Select:
    """The pairs with each person's items numbered in the order of their keyed hashes.

    ROW_NUMBER over distinct pairs, ties of the hash broken by the item: the numbering of one
    person's items is a function of that person's items and the salt.
    """
    names = item_names(query)
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column("person", "pairs")],
        order=exp.Order(expressions=choice_order(query, schema, dialect)),
    )
    shown = [column(name, "pairs") for name in (*more, *names)]
    shown.append(named(number, "choice"))
    return exp.select(*shown, copy=False).from_(derived(kept, "pairs"), copy=False)


def choice_order(query: CountQuery, schema: Schema, dialect: str) -> list[exp.Ordered]:
    """In which order a person's pairs are kept: by the keyed hash, ties by the item."""
    names = item_names(query)
    hashed = digest(message(query, schema, dialect, names), dialect)
    items = [column(name, "pairs") for name in names]
    return [ascending(part, dialect) for part in (hashed, *items)]


def message(
    query: CountQuery, schema: Schema, dialect: str, names: Sequence[str], purpose: str = ""
) -> exp.Expression:
    """What is hashed: the salt, then person and item as texts with their lengths in front.

    The lengths make it one-to-one: no other person and item give the same text.
    """
    texts: list[exp.Expression] = [exp.cast(column("person", "pairs"), exp.DataType.Type.TEXT)]
    if dialect == "sqlite" or (isinstance(schema, Columns) and query.person in schema.marked):
        texts[0] = unmarked(texts[0], dialect)
    kinds: list[str] = [schema.get(str(part), "text") for part in query.item_columns]
    for name, kind in zip(names, kinds if names else [], strict=True):
        value = column(name, "pairs")
        shown = exp.cast(value, exp.DataType.Type.TEXT)
        texts.append(truth_text(value) if kind == "boolean" and dialect == "sqlite" else shown)
    joined: exp.Expression = exp.Literal.string(query.salt.hex() + purpose)
    for text in texts:
        length = exp.cast(exp.Length(this=text.copy()), exp.DataType.Type.TEXT)
        for part in (length, exp.Literal.string(":"), text):
            joined = exp.DPipe(this=joined, expression=part, safe=False)
    return joined


def _present(value: exp.Expression) -> exp.Expression:
    return exp.not_(exp.Is(this=value, expression=exp.null()))


def call(function: str, paths: str | Sequence[str], **options: exp.Expression) -> exp.Table:
    """A table function over files, with named options: ``READ_CSV('path', header = TRUE)``."""
    given: list[exp.Expression] = [
        exp.EQ(this=exp.var(name), expression=value) for name, value in options.items()
    ]
    if isinstance(paths, str):
        first: exp.Expression = exp.Literal.string(paths)
    else:
        first = exp.Array(expressions=[exp.Literal.string(path) for path in paths])
    return exp.Table(this=exp.Anonymous(this=function, expressions=[first, *given]))


def record(fields: dict[str, str]) -> exp.Struct:
    """A struct literal ``{'name': 'value', …}``."""
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.Literal.string(name), expression=exp.Literal.string(value))
            for name, value in fields.items()
        ]
    )
