"""The hunt for a query and a database that break R(D without p) = R(D) without p's rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

from shop import PEOPLE, PRIVACY, Queries, database, difference, without
from shop_engines import Shop, catalogue

from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.ranked_query import read
from topsecret.sources.relations.refusal import QueryRefused

FILE = PrivacyFile.parse(PRIVACY)
DATABASES = 2
"""That each accepted query is tried on, with and without each of the people."""

END = " ORDER BY n DESC LIMIT 3"
MIXING = (
    "SELECT a.place, COUNT(DISTINCT a.user_id) n FROM checkins a JOIN checkins b ON a.ts = b.ts "
    "GROUP BY a.place" + END
)
MEMBERS = (
    "SELECT l.qty, COUNT(DISTINCT person) n FROM order_lines l WHERE l.order_id IN (SELECT o.id "
    "FROM orders o WHERE o.day = 'mon') GROUP BY l.qty" + END
)
LINKS = "SELECT l.qty, COUNT(DISTINCT person) n FROM order_lines l GROUP BY l.qty" + END
OTHER_KEYS = (
    "SELECT l.qty, COUNT(DISTINCT o.customer_id) n FROM order_lines l JOIN orders o ON l.qty = "
    "o.id GROUP BY l.qty" + END
)
FIRSTS = (
    "SELECT y, COUNT(DISTINCT user_id) n FROM (SELECT user_id, rating > 0.1 AS y, ROW_NUMBER() "
    "OVER (PARTITION BY user_id ORDER BY user_id) AS r FROM (SELECT user_id, rating FROM checkins) "
    "a) b WHERE r = 1 GROUP BY y" + END
)
SUMS = (
    "SELECT CAST(t.s AS TEXT) AS x, COUNT(DISTINCT t.user_id) n FROM (SELECT user_id, SUM(rating) "
    "AS s FROM checkins GROUP BY user_id) t GROUP BY 1" + END
)
"""Queries that show what a wrong variant does."""


def breaks(
    shop: Shop,
    unique: bool,
    seed: int,
    queries: int,
    query: str | None = None,
    databases: int = DATABASES,
) -> Iterator[str]:
    """Queries, random ones or the one given, that break the claim.

    Or whose COUNT(*) would count one person twice, or whose public items one person changes.
    """
    chance = random.Random(seed)
    known = catalogue(shop.dialect, unique)
    tried = 0
    for _ in range(20 * queries):
        if tried == queries:
            return
        text = query or Queries(chance).query()
        try:
            asked = read(text, FILE, known, "duckdb", bounded=True)
            sql = asked.rows.sql(shop.dialect)
            domain = None if asked.domain is None else asked.domain.sql(shop.dialect)
        except QueryRefused:
            continue
        each_once = asked.measure == "persons" and "COUNT(*) AS n" in text
        tried += 1
        for _again in range(databases):
            data = database(chance, unique)
            shop.fill(data)
            rows, public = shop.rows(sql), domain and set(shop.rows(domain))
            if each_once and len(set(rows)) < len(rows):
                yield text
            for person in PEOPLE:
                fewer = without(data, person)
                shop.fill({t: chance.sample(held, len(held)) for t, held in fewer.items()})
                changed = domain and set(shop.rows(domain)) != public  # no person has a part in it
                if changed or difference(rows, shop.rows(sql), person):
                    yield text
                    break
