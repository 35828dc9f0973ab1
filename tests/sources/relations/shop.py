"""A small shop with hostile values, its owners by separate code, and random queries about it.

The claim under test: the rebuilt rows of a database without person p are the rebuilt rows of the
database without those that p owns, as bags.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PRIVACY = """
[tables.customers]
person = "id"
[tables.orders]
link = "customer_id -> customers.id"
[tables.order_lines]
link = "order_id -> orders.id"
[tables.shipments]
link = "order_id -> orders.id"
[tables.products]
public = true
[tables.venues]
public = true
[tables.checkins]
person = "user_id"
[tables.checkins.values]
day = ["mon", "tue", "wed"]
[tables.messages]
person = "sender"
other_persons = ["receiver"]
"""
COLUMNS: dict[str, dict[str, str]] = {
    "customers": {"id": "integer", "country": "text", "vip": "boolean"},
    "orders": {"id": "integer", "customer_id": "integer", "day": "text", "score": "float"},
    "order_lines": {"order_id": "integer", "product_id": "integer", "qty": "integer"},
    "shipments": {"order_id": "integer", "carrier": "text"},
    "products": {"id": "integer", "category": "text"},
    "venues": {"id": "text", "city": "text"},
    "checkins": {
        "user_id": "integer",
        "place": "text",
        "day": "text",
        "ts": "integer",
        "rating": "float",
    },
    "messages": {"sender": "integer", "receiver": "integer", "topic": "text"},
}
TYPES = {"integer": "INTEGER", "text": "TEXT", "boolean": "BOOLEAN", "float": "DOUBLE PRECISION"}
PEOPLE = (1, 2, 3)
TEXTS: dict[str, Sequence[str | None]] = {
    "country": ("FR", "fr", None),
    "day": ("mon", "tue", "wed", "Mon"),
    "carrier": ("dhl", "ups"),
    "category": ("A", "a", "B"),
    "place": ("p1", "P1", "p2", "x", None),
    "city": ("A", "B"),
    "topic": ("p1", "t"),
}
FLOATS = (0.0, -0.0, 1.5, 0.1, 0.1 + 2**-56, None)

Database = Mapping[str, Sequence[tuple[Any, ...]]]


def database(chance: random.Random, unique: bool = True) -> Database:
    """A few rows in every table, in any order; ``unique`` keys of orders, or repeated ones."""

    def value(table: str, column: str) -> Any:
        kind = COLUMNS[table][column]
        if column in {"user_id", "sender", "receiver", "customer_id"}:
            return chance.choice([*PEOPLE, *PEOPLE, None, 4])
        if column in {"order_id", "product_id"}:
            return chance.choice([1, 2, 3, None])
        if kind == "boolean":
            return chance.choice([True, False, None])
        if kind == "float":
            return chance.choice(FLOATS)
        if kind == "integer":
            return chance.choice([0, 1, 2, 2, None])
        if (table, column) == ("venues", "id"):
            return chance.choice(["p1", "p2", "P1", "z"])
        return chance.choice(TEXTS[column])

    made: dict[str, list[tuple[Any, ...]]] = {}
    for table, columns in COLUMNS.items():
        rows = [
            tuple(value(table, column) for column in columns) for _ in range(chance.randint(0, 6))
        ]
        if table in {"customers", "orders"}:
            keys = chance.sample(range(1, 8), len(rows))
            if not unique:
                keys = [chance.choice([1, 2, 3]) for _ in rows]
            rows = [(key, *row[1:]) for key, row in zip(keys, rows, strict=True)]
        made[table] = rows
    if not unique:  # persons stay persons: only the keys of orders repeat
        made["customers"] = [(p, *r[1:]) for p, r in zip(PEOPLE, made["customers"], strict=False)]
    return made


def owners(data: Database) -> dict[str, list[set[int]]]:
    """Who owns each row, by the words of the privacy file and by no other code."""
    held: dict[str, list[set[int]]] = {}

    def of(*values: Any) -> set[int]:
        return {value for value in values if value is not None}

    held["customers"] = [of(row[0]) for row in data["customers"]]
    held["orders"] = [of(row[1]) for row in data["orders"]]
    for table in ("order_lines", "shipments"):
        held[table] = [
            set().union(
                *(
                    who
                    for order, who in zip(data["orders"], held["orders"], strict=True)
                    if row[0] is not None and order[0] == row[0]
                ),
                set(),
            )
            for row in data[table]
        ]
    held["checkins"] = [of(row[0]) for row in data["checkins"]]
    held["messages"] = [of(row[0]) for row in data["messages"]]
    return held


def without(data: Database, person: int) -> Database:
    """The database without the private rows that this person alone owns."""
    held = owners(data)
    return {
        table: [
            row
            for place, row in enumerate(rows)
            if table not in held or held[table][place] != {person}
        ]
        for table, rows in data.items()
    }


def schema(*, dialect: str, unique: bool) -> Iterator[str]:
    """The statements that make the tables."""
    for table, columns in COLUMNS.items():
        shown = []
        for column, kind in columns.items():
            key = " PRIMARY KEY" if unique and column == "id" and table == "orders" else ""
            hostile = " COLLATE NOCASE" if dialect == "sqlite" and kind == "text" else ""
            shown.append(f"{column} {TYPES[kind]}{key}{hostile}")
        yield f"CREATE TABLE {table} ({', '.join(shown)})"


def difference(
    rows: Sequence[tuple[Any, ...]], fewer: Sequence[tuple[Any, ...]], person: int
) -> Counter[Any]:
    """What distinguishes the rows that others own from the rows without the person."""

    def key(row: tuple[Any, ...]) -> tuple[str, ...]:
        return tuple(repr(value) for value in row)

    others = Counter(key(row) for row in rows if str(row[-1]) != str(person))
    rest = Counter(key(row) for row in fewer)
    return (others - rest) + (rest - others)


# -- random queries

KEYED = {
    "checkins": ("user_id", ["place", "day", "ts", "rating"]),
    "orders": ("customer_id", ["id", "day", "score"]),
    "customers": ("id", ["country", "vip"]),
    "messages": ("sender", ["topic", "receiver"]),
}
LINKED = {"order_lines": ["order_id", "product_id", "qty"], "shipments": ["order_id", "carrier"]}


class Queries:
    """Random nested queries, of which many are accepted."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._number = 0

    def query(self) -> str:
        """A whole query."""
        relation, person, columns = self._relation(3)
        item = self._chance.choice(columns)
        where = self._where("z", person, columns)
        persons = f"COUNT(DISTINCT z.{person})"
        summed = f"SUM(z.{self._chance.choice(columns)})"
        measure = self._chance.choice(["COUNT(*)", summed, persons, persons])
        return (
            f"SELECT z.{item}, {measure} AS n FROM ({relation}) z{where} "
            f"GROUP BY z.{item} ORDER BY n DESC LIMIT 3"
        )

    def _alias(self) -> str:
        self._number += 1
        # Names that a rebuilt tree uses itself.
        return self._chance.choice(["t", "c", "own", "i", "events", "e"]) + str(self._number)

    def _relation(self, depth: int) -> tuple[str, str, list[str]]:
        makers = [self._plain]
        if depth > 0:
            makers += [
                self._joined,
                self._grouped,
                self._numbered,
                self._union,
                self._distinct,
                self._with_public,
                self._members,
                self._linked,
                self._last,
                self._summed,
                self._ranked,
                self._common,
                self._first_public,
            ]
        return self._chance.choice(makers)(depth - 1)

    def _plain(self, depth: int) -> tuple[str, str, list[str]]:
        table = self._chance.choice(list(KEYED))
        person, columns = KEYED[table]
        alias = self._alias()
        shown = ", ".join(f"{alias}.{column}" for column in columns)
        where = self._where(alias, person, columns)
        return (
            f"SELECT {alias}.{person} AS who, {shown} FROM {table} {alias}{where}",
            "who",
            columns,
        )

    def _linked(self, depth: int) -> tuple[str, str, list[str]]:
        table = self._chance.choice(list(LINKED))
        columns = LINKED[table]
        alias, order = self._alias(), self._alias()
        shown = ", ".join(f"{alias}.{column}" for column in columns)
        by_link = f"{alias}.order_id = {order}.id"
        both = f"{table} {alias}", f"orders {order}"
        if self._chance.random() < 0.5:
            both = both[1], both[0]
        tables = self._chance.choice(
            [
                f"orders {order} LEFT JOIN {table} {alias} ON {by_link}",
                f"{both[0]} JOIN {both[1]} ON {by_link}",
                f"{both[0]}, {both[1]} WHERE {by_link}",
                f"{both[0]} JOIN {both[1]} ON {by_link} JOIN customers z ON z.id = "
                f"{order}.customer_id",
                f"products y JOIN {table} {alias} ON y.id = {alias}.order_id JOIN orders {order} "
                f"ON {by_link}",
                f"{table} {alias} JOIN products y ON y.id = {alias}.order_id AND person = person "
                f"JOIN orders {order} ON {by_link} AND person = person",
                f"shipments y JOIN {table} {alias} ON {alias}.order_id = y.order_id JOIN orders "
                f"{order} ON {by_link}",
                f"{both[0]} JOIN {both[1]} ON {by_link} RIGHT JOIN orders x ON x.customer_id = "
                f"{order}.customer_id",
            ]
        )
        return f"SELECT {order}.customer_id AS who, {shown} FROM {tables}", "who", columns

    def _joined(self, depth: int) -> tuple[str, str, list[str]]:
        (a, who_a, columns), (b, who_b, more) = self._relation(depth), self._relation(depth)
        left, right = self._alias(), self._alias()
        one, other = self._chance.choice(columns), self._chance.choice(more)
        join = self._chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
        kept = left if join != "RIGHT JOIN" else right
        who = who_a if kept == left else who_b
        return (
            f"SELECT {kept}.{who} AS who, {left}.{one} AS x1, {right}.{other} AS x2 FROM ({a}) "
            f"{left} {join} ({b}) {right} ON {left}.{who_a} = {right}.{who_b}",
            "who",
            ["x1", "x2"],
        )

    def _grouped(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        alias, key = self._alias(), self._chance.choice(columns)
        made = self._chance.choice(["COUNT(*)", f"COUNT({alias}.{key})", f"MAX({alias}.{key})"])
        having = self._chance.choice(["", " HAVING COUNT(*) >= 2"])
        return (
            f"SELECT {alias}.{who} AS who, {alias}.{key} AS x1, {made} AS x2 FROM ({inner}) "
            f"{alias} GROUP BY {alias}.{who}, {alias}.{key}{having}",
            "who",
            ["x1", "x2"],
        )

    def _numbered(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        alias, outer = self._alias(), self._alias()
        key, order = self._chance.choice(columns), self._chance.choice(columns)
        way = self._chance.choice(["", " DESC"])
        return (
            f"SELECT {outer}.who, {outer}.x1 FROM (SELECT {alias}.{who} AS who, {alias}.{key} AS "
            f"x1, ROW_NUMBER() OVER (PARTITION BY {alias}.{who} ORDER BY {alias}.{order}{way}) AS "
            f"rn FROM ({inner}) {alias}) {outer} WHERE {outer}.rn <= 1",
            "who",
            ["x1"],
        )

    def _last(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        alias, order = self._alias(), self._chance.choice(columns)
        shown = ", ".join(f"{alias}.{column} AS x{n}" for n, column in enumerate(columns))
        return (
            f"SELECT DISTINCT ON ({alias}.{who}) {alias}.{who} AS who, {shown} FROM ({inner}) "
            f"{alias} ORDER BY {alias}.{who}, {alias}.{order} DESC",
            "who",
            [f"x{n}" for n in range(len(columns))],
        )

    def _union(self, depth: int) -> tuple[str, str, list[str]]:
        (a, who_a, columns), (b, who_b, more) = self._relation(depth), self._relation(depth)
        left, right = self._alias(), self._alias()
        one, other = self._chance.choice(columns), self._chance.choice(more)
        word = self._chance.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        return (
            f"SELECT {left}.{who_a} AS who, {left}.{one} AS x1 FROM ({a}) {left} {word} "
            f"SELECT {right}.{who_b}, {right}.{other} FROM ({b}) {right}",
            "who",
            ["x1"],
        )

    def _distinct(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        alias, key = self._alias(), self._chance.choice(columns)
        return (
            f"SELECT DISTINCT {alias}.{who} AS who, {alias}.{key} AS x1 FROM ({inner}) {alias}",
            "who",
            ["x1"],
        )

    def _with_public(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        alias, public = self._alias(), self._alias()
        key = self._chance.choice(columns)
        join = self._chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
        return (
            f"SELECT {alias}.{who} AS who, {alias}.{key} AS x1, {public}.city AS x2 FROM ({inner}) "
            f"{alias} {join} venues {public} ON {public}.id = {alias}.{key}",
            "who",
            ["x1", "x2"],
        )

    def _members(self, depth: int) -> tuple[str, str, list[str]]:
        (a, who_a, columns), (b, who_b, _) = self._relation(depth), self._relation(depth)
        alias, other = self._alias(), self._alias()
        key = self._chance.choice(columns)
        negated = self._chance.choice(["", "NOT "])
        test = self._chance.choice(
            [
                f"{alias}.{who_a} {negated}IN (SELECT {other}.{who_b} FROM ({b}) {other})",
                f"{negated}EXISTS (SELECT 1 FROM ({b}) {other} WHERE {other}.{who_b} = "
                f"{alias}.{who_a})",
            ]
        )
        return (
            f"SELECT {alias}.{who_a} AS who, {alias}.{key} AS x1 FROM ({a}) {alias} WHERE {test}",
            "who",
            ["x1"],
        )

    def _summed(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        alias, key = self._alias(), self._chance.choice(columns)
        made = self._chance.choice(
            [
                f"SUM(CASE WHEN {alias}.{key} IS NULL THEN 1 ELSE 2 END)",
                f"COUNT(DISTINCT {alias}.{key})",
                f"COUNT(*) FILTER (WHERE {alias}.{key} IS NOT NULL)",
                f"SUM({alias}.{key})",
                f"MIN({alias}.{key})",
            ]
        )
        return (
            f"SELECT {alias}.{who} AS who, {made} AS x1 FROM ({inner}) {alias} "
            f"GROUP BY {alias}.{who}",
            "who",
            ["x1"],
        )

    def _ranked(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        alias, key = self._alias(), self._chance.choice(columns)
        order, part = self._chance.choice(columns), self._chance.choice(columns)
        number = self._chance.choice(["RANK", "DENSE_RANK", "ROW_NUMBER"])
        more = self._chance.choice(["", f", {alias}.{part}"])
        return (
            f"SELECT {alias}.{who} AS who, {alias}.{key} AS x1 FROM ({inner}) {alias} QUALIFY "
            f"{number}() OVER (PARTITION BY {alias}.{who}{more} ORDER BY {alias}.{order}) "
            + self._chance.choice(["= 1", "<= 2"]),
            "who",
            ["x1"],
        )

    def _common(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        name, key = self._alias(), self._chance.choice(columns)
        join = self._chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
        return (
            f"WITH {name} AS (SELECT y.{who} AS who, y.{key} AS x1 FROM ({inner}) y) SELECT who, "
            f"a.x1, b.x1 AS x2 FROM {name} a {join} {name} b USING (who)",
            "who",
            ["x1", "x2"],
        )

    def _first_public(self, depth: int) -> tuple[str, str, list[str]]:
        inner, who, columns = self._relation(depth)
        alias, key = self._alias(), self._chance.choice(columns)
        negated = self._chance.choice(["", "NOT "])
        first = "SELECT city, id FROM venues ORDER BY city LIMIT 1"
        return (
            f"SELECT {alias}.{who} AS who, {alias}.{key} AS x1 FROM ({inner}) {alias} WHERE "
            f"{alias}.{key} {negated}IN (SELECT v.id FROM ({first}) v)",
            "who",
            ["x1"],
        )

    def _where(self, alias: str, person: str, columns: list[str]) -> str:
        texts = [c for c in columns if c in TEXTS]
        if not texts or self._chance.random() < 0.6:
            return ""
        column = self._chance.choice(texts)
        value = self._chance.choice([v for v in TEXTS[column] if v is not None])
        test = self._chance.choice(["=", "<>", ">="])
        return f" WHERE {alias}.{column} {test} '{value}'"
