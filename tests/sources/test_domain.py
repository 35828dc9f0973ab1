"""Public domains: an engine's groups and names are those of the full histogram."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import scipy.stats
import sqlalchemy
from contract import SALT, by_hand
from events import write

from postgres import Server
from topsecret import Column, Histogram, top_k
from topsecret.counts.engine_table import GroupedTable
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import GumbelTopK
from topsecret.sources import CountQuery, domain_of
from topsecret.sources.domains.counted_domain import CountedDomain, counted_domains
from topsecret.sources.domains.domain import FileColumn
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSource
from topsecret.sources.session import Engine

Load = Callable[[Sequence[tuple[Any, Any]], Sequence[Any]], Engine]

ROWS = [(f"u{n}", f"p{n * m % 13}") for n in range(40) for m in range(1, 5)]
NAMES = sorted([f"p{n}" for n in range(3, 20)])  # p0 … p2 are outside, p13 … are unobserved
NUMBERS = [(n, n * m % 13) for n in range(40) for m in range(1, 5)]


def database(engine: sqlalchemy.Engine) -> Load:
    def load(rows: Sequence[tuple[Any, Any]], public: Sequence[Any]) -> Engine:
        kind = "TEXT" if isinstance(rows[0][0], str) else "BIGINT"
        with engine.begin() as connection:
            for name, columns in (
                ("visits", f'"user" {kind}, place {kind}'),
                ("venues", f"id {kind}"),
            ):
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")
                connection.exec_driver_sql(f"CREATE TABLE {name} ({columns})")
            connection.execute(
                sqlalchemy.text("INSERT INTO visits VALUES (:u, :p)"),
                [{"u": u, "p": p} for u, p in rows],
            )
            listed = [{"i": i} for i in (*public, public[0], None)]  # a repetition, and a NULL
            connection.execute(sqlalchemy.text("INSERT INTO venues VALUES (:i)"), listed)
        return SqlSource(engine, "visits")

    return load


@pytest.fixture(params=["csv", "sqlite", "postgresql"])
def load(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Load]:
    if request.param == "csv":

        def files(rows: Sequence[tuple[Any, Any]], public: Sequence[Any]) -> Engine:
            del public
            return FileSource(write(tmp_path / "visits.csv", [(str(u), str(p)) for u, p in rows]))

        yield files
        return
    if request.param == "sqlite":
        engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/events.db")
        yield database(engine)
        engine.dispose()
        return
    server: Server = request.getfixturevalue("postgres_server")
    name = server.create_database()
    engine = sqlalchemy.create_engine(server.url(name))
    yield database(engine)
    engine.dispose()
    server.drop_database(name)


def check(counted: CountedDomain, expected: Counter[Any], public: Sequence[Any]) -> None:
    """Groups, names and leading rows against the full histogram."""
    full = {item: expected.get(item, 0) for item in public}
    assert counted.size == len(public)
    assert dict(counted.counts()) == Counter(full.values())
    for count in set(full.values()):
        mine = sorted(item for item in full if full[item] == count)
        wanted = [(count, place) for place in range(len(mine))]
        assert counted.items_at(wanted) == mine
    seen = sorted(((-n, i) for i, n in full.items() if n))
    assert counted.leading(5) == [(i, -n) for n, i in seen][:5]


def ask(domain: Any, cap: int | None = None) -> CountQuery:
    return CountQuery("place", "user", 1, max_items=cap, domain=domain_of(domain), salt=SALT)


@pytest.mark.parametrize("cap", [None, 2])
def test_a_list(load: Load, cap: int | None) -> None:
    inside = [(u, p) for u, p in ROWS if p in NAMES]
    with counted_domains(load(ROWS, NAMES), [ask(NAMES, cap)]) as [counted]:
        check(counted, by_hand(inside, cap), NAMES)


@pytest.mark.parametrize("cap", [None, 2])
def test_a_file(load: Load, cap: int | None, tmp_path: Path) -> None:
    inside = [(u, p) for u, p in ROWS if p in NAMES]
    source = load(ROWS, NAMES)
    plain = tmp_path / "names.txt"
    plain.write_text("\n".join([*NAMES, "", NAMES[0]]), encoding="utf-8")
    table = tmp_path / "names.jsonl"
    table.write_text("".join(json.dumps({"id": name}) + "\n" for name in NAMES), encoding="utf-8")
    for domain in (plain, FileColumn(table, ("id",))):
        with counted_domains(source, [ask(domain, cap)]) as [counted]:
            check(counted, by_hand(inside, cap), NAMES)


@pytest.mark.parametrize("cap", [None, 2])
@pytest.mark.parametrize("public", [range(-5, 30), range(1, 40, 3), range(8, 3, -1)])
def test_a_range(load: Load, cap: int | None, public: range) -> None:
    inside = [(u, p) for u, p in NUMBERS if p in public]
    with counted_domains(load(NUMBERS, public), [ask(public, cap)]) as [counted]:
        check(counted, by_hand(inside, cap), public)


@pytest.mark.parametrize("cap", [None, 2])
def test_a_column_of_another_table(load: Load, cap: int | None) -> None:
    inside = [(u, p) for u, p in ROWS if p in NAMES]
    source = load(ROWS, NAMES)
    if isinstance(source, FileSource):
        with (
            pytest.raises(InvalidParameter, match="needs a database"),
            counted_domains(source, [ask(Column("venues", "id"))]),
        ):
            pass
        return
    with counted_domains(source, [ask(Column("venues", "id"), cap)]) as [counted]:
        check(counted, by_hand(inside, cap), NAMES)


def fits(observed: Counter[Any], law: dict[Any, float], draws: int) -> float:
    """The p-value of a G-test, outcomes of small expectation pooled."""
    small = {o for o, p in law.items() if p * draws < 5}
    cells = [(observed[o], p * draws) for o, p in law.items() if o not in small]
    rest = sum(observed[o] for o in small)
    expected = sum(law[o] for o in small) * draws
    if expected > 0:
        cells.append((rest, expected))
    found, wanted = zip(*cells, strict=True)
    scale = sum(found) / sum(wanted)
    return float(
        scipy.stats.power_divergence(found, [w * scale for w in wanted], lambda_="log-likelihood")[
            1
        ]
    )


ALARM = 1e-6  # a correct sampler fails this often


def test_the_answer_has_the_law_of_the_full_histogram(load: Load) -> None:
    rows = [(n, item) for item, count in ((3, 4), (5, 4), (7, 2), (9, 1)) for n in range(count)]
    public, draws = range(2, 9), 700
    full = Histogram.of({3: 4, 5: 4, 7: 2}, domain=public)
    mechanism = GumbelTopK(k=2, scale=2.0)
    with counted_domains(load(rows, public), [ask(public)]) as [counted]:
        histogram = Histogram(GroupedTable(counted))
        seen = Counter(mechanism.select(histogram).items for _ in range(draws))
    assert fits(seen, mechanism.distribution(full), draws) > ALARM
    assert fits(seen, GumbelTopK(k=2, scale=1.4).distribution(full), draws) < ALARM


def test_few_rows_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from topsecret.sources.engines.duckdb_session import DuckSession

    moved = []
    plain = DuckSession.ask

    def spied(self: DuckSession, sql: str, values: list[Any]) -> Any:
        rows = plain(self, sql, values)
        moved.append(len(rows))
        return rows

    monkeypatch.setattr(DuckSession, "ask", spied)
    path = write(tmp_path / "e.csv", [(f"u{n}", str(n % 500)) for n in range(2000)])
    release = top_k(path, item="place", person="user", k=20, epsilon=1, domain=range(10**9))
    assert len(release.items) == 20
    assert all(isinstance(item, int) and item in range(10**9) for item in release.items)
    assert release.complete
    assert sum(moved) < 100
    assert "the whole numbers from 0 to 999999999" in str(release)


def test_tuples(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    rows = [f"u{n},bonn,park" for n in range(600)] + ["x,bonn,pier"]
    path.write_text("user,city,place\n" + "\n".join(rows), encoding="utf-8")
    public = [("bonn", "park"), ("bonn", "pier"), ("ulm", "park")]
    release = top_k(path, item=["city", "place"], person="user", k=1, epsilon=1, domain=public)
    assert release.items == (("bonn", "park"),)


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ([], "domain must not be empty; list the items that may be named"),
        (range(0), r"domain=range\(0, 0\) must not be empty"),
        (["a", "a"], "domain must not name an item twice"),
        (["a", 1], "must be all text, all whole numbers or all tuples; found int, str"),
        ([1.5], "found float"),
        (42, "domain must be a list, a range, a file or Column"),
        (range(2**70), r"must keep to ±2\*\*62"),
        ([("a", "b")], "an item of the domain has 2 parts and the item 1 columns"),
    ],
)
def test_mistakes(tmp_path: Path, domain: Any, message: str) -> None:
    path = write(tmp_path / "e.csv", [("ann", "park")])
    with pytest.raises(InvalidParameter, match=message):
        top_k(path, item="place", person="user", k=1, epsilon=1, domain=domain)


WIDE = range(-(2**62), 2**62, 2**61)


@pytest.mark.parametrize(
    ("kind", "public", "value"),
    [
        ("TINYINT", range(-100, 121, 2), 100),
        ("TINYINT", range(-100, 121, 2), 127),
        ("UTINYINT", range(-100, 300, 2), 254),
        ("BIGINT", WIDE, 2**63 - 1),
        ("BIGINT", WIDE, -(2**63)),
        ("BIGINT", range(-(2**62), 2**62, 2**63 - 1), 2**62 - 1),
        ("HUGEINT", WIDE, -(2**127)),
    ],
)
def test_a_range_is_not_overflowed_by_a_row(kind: str, public: range, value: int) -> None:
    """One row's value must not make the query fail, neither when it is counted nor when named."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (user INTEGER, place {kind})")
        connection.execute(f"INSERT INTO t VALUES (1, {value}), (2, {value}), (2, 0)")
        query = CountQuery("place", "user", 9, domain=domain_of(public))
        with counted_domains(OpenConnection(connection, "t"), [query]) as (counted,):
            check_all(counted, public, Counter({value: 2, 0: 1}))


@pytest.mark.parametrize("rows", ["", "(1, 0)", f"(1, {2**128 - 1})"])
def test_a_type_that_duckdb_cannot_compare_is_refused_whatever_the_rows(rows: str) -> None:
    """DuckDB fails where a UHUGEINT is compared with a number below 0."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (user INTEGER, place UHUGEINT)")
        if rows:
            connection.execute(f"INSERT INTO t VALUES {rows}")
        query = CountQuery("place", "user", 9, domain=domain_of(range(-100, 121)))
        source = OpenConnection(connection, "t")
        with (
            pytest.raises(InvalidParameter, match="needs an item of whole numbers"),
            counted_domains(source, [query]),
        ):
            pass


@pytest.mark.parametrize(
    ("kind", "public", "value"),
    [
        ("INTEGER", range(-100, 2**31, 2), 2**31 - 2),
        ("INTEGER", range(-100, 2**31, 2), 2**31 - 1),
        ("BIGINT", WIDE, 2**63 - 1),
        ("BIGINT", WIDE, -(2**63)),
    ],
)
def test_a_range_is_not_overflowed_in_postgresql(
    postgres_url: str, kind: str, public: range, value: int
) -> None:
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f'CREATE TABLE t ("user" INTEGER, place {kind})')
        connection.exec_driver_sql(f"INSERT INTO t VALUES (1, {value}), (2, {value}), (2, 0)")
    query = CountQuery("place", "user", 9, domain=domain_of(public))
    with counted_domains(SqlSource(engine, "t"), [query]) as (counted,):
        check_all(counted, public, Counter({value: 2, 0: 1}))
    engine.dispose()


def check_all(counted: CountedDomain, public: range, seen: Counter[int]) -> None:
    inside = {item: count for item, count in seen.items() if item in public}
    groups = Counter(inside.values())
    groups[0] += len(public) - len(inside)
    assert counted.counts() == sorted((count, items) for count, items in groups.items() if items)
    unseen = len(public) - len(inside)
    places = sorted({0, min(50, unseen - 1), unseen - 1})
    expected = list(_at(public, inside, places))
    assert counted.items_at([(0, place) for place in places]) == expected
    for item, count in inside.items():
        assert counted.items_at([(count, 0)]) == [item]


def _at(public: range, inside: dict[int, int], places: list[int]) -> Iterator[int]:
    """The numbers at these places among those that nobody has, by moving past the others."""
    taken = sorted(public.index(item) for item in inside)
    for place in places:
        for index in taken:
            place += index <= place
        yield public[place]


LARGEST = range(-(2**61), 2**61)


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [
        ("gumbel", 1e-6),
        ("canonical-set", 0),
        ("oneshot-private-length", 0),
        ("oneshot-exponential", 0),
    ],
)
def test_the_largest_range_is_answered_whether_or_not_a_row_is_in_it(
    mechanism: str, delta: float
) -> None:
    """All 2**62 numbers unseen, or all but one: a failure of either would tell them apart."""
    for rows in ({"who": [], "n": []}, {"who": [1], "n": [5]}):
        table = pa.table(rows, schema=pa.schema({"who": pa.int64(), "n": pa.int64()}))
        asked = {"domain": LARGEST, "mechanism": mechanism, "delta": delta}
        assert top_k(table, item="n", person="who", k=1, epsilon=1, **asked).items  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "wide",
    [
        range(-(2**61), 2**61 + 1),
        range(-(2**62), 2**62),
        range(-(2**62), 2**62 + 1, 4),  # an item 2**62, less the first, is beyond 64 bits
    ],
)
def test_a_range_whose_unseen_numbers_do_not_fit_is_refused(wide: range) -> None:
    with pytest.raises(InvalidParameter, match=r"keep to ±2\*\*62, one end left out, and to"):
        domain_of(wide)
