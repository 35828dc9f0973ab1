"""What a column holds is declared: no row decides how the rows of others are read."""

import datetime
import enum
import ipaddress
import sys
import uuid
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pytest

from topsecret import Expression, top_k
from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.sources import CountQuery
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_tables import FrameSource, OpenConnection

pandas: Any = pytest.importorskip("pandas")
pyarrow: Any = pytest.importorskip("pyarrow")
pyarrow_parquet: Any = pytest.importorskip("pyarrow.parquet")

QUERY = CountQuery("place", "user", rows=9)


@pytest.mark.parametrize(
    "values", [[2, 2, 1], [2**63 - 1, 2**63 - 1, 2**63 - 2], [True, True, False], ["b", "b", "a"]]
)
def test_a_row_without_value_does_not_retype_a_categorical(values: list[Any]) -> None:
    users = ["ann", "bob", "cy"]
    before = pandas.DataFrame({"user": users, "place": pandas.Categorical(values)})
    more = pandas.Categorical([*values, None])
    after = pandas.DataFrame({"user": [*users, "zoe"], "place": more})
    expected = [(values[0], 2), (values[2], 1)]
    assert FrameSource(before).leading_counts(QUERY) == expected
    assert FrameSource(after).leading_counts(QUERY) == expected
    question: dict[str, Any] = {"item": "place", "person": "user", "k": 1, "epsilon": 50}
    for frame in (before, after):  # a domain of such items was a free oracle
        assert top_k(frame, domain=sorted(set(values)), **question).items == (values[0],)


def test_objects_are_read_one_by_one() -> None:
    """Whether a column mixes types is a matter of rows: to refuse it would be an oracle."""
    users: list[Any] = ["1", 1, 1.5, None, float("nan"), "\x01int:1", "\ud800", b"1"]
    users += [
        True,
        1.0,
        Decimal("1.00"),
        numpy.int8(1),
        numpy.float32(1.5),
        Fraction(3, 2),
    ]  # equal
    users += [Decimal("0.1"), Decimal("0.10"), 10**5000, Decimal("1e5000"), float("inf")]
    users += [Decimal("Infinity"), numpy.timedelta64(1, "ns"), object(), object(), (object(), 1)]
    users += [memoryview(b"1"), bytearray(b"1"), (1, "a"), (1.0, "a"), ("1", "a"), {"a"}]
    noon, deep = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC), ()
    for _ in range(5000):
        deep = (deep,)
    zone = datetime.timezone(datetime.timedelta(hours=2))
    users += [noon, noon.astimezone(zone), pandas.Timestamp(noon), Decimal("0E+999999999"), 0, deep]
    users += [datetime.timedelta(1), pandas.Timedelta(days=1), enum.StrEnum("S", {"A": "1"}).A]  # type: ignore[attr-defined]
    users += [frozenset({"a"}), numpy.longdouble(1.5), complex(1), pandas.Period("2024-05")]
    users += [numpy.datetime64("2024-05-01", unit) for unit in ("D", "s", "ns")]
    users += [datetime.datetime(2024, 5, 1), pandas.Timestamp("2024-05-01")]
    users += [noon.timetz(), noon.astimezone(zone).timetz(), uuid.UUID(int=5), uuid.UUID(int=5)]
    users += [Fraction(1, 10), datetime.date(2024, 5, 1), 10**500, Decimal("1e500")]  # 10**500 new
    frame = pandas.DataFrame({"user": pandas.Series(users, dtype=object)})
    frame["place"] = "park"
    assert FrameSource(frame).leading_counts(QUERY) == [("park", 21)]
    capped = CountQuery("place", "user", rows=9, max_items=1, salt=bytes(16))
    assert FrameSource(frame).leading_counts(capped) == [("park", 21)]
    places = ["tea", 1, "\udfff", Decimal("sNaN")]
    items = pandas.DataFrame({"user": list("abcd"), "place": places}, dtype=object)
    found = FrameSource(items).leading_counts(QUERY)
    assert found == [("1", 1), ("sNaN", 1), ("tea", 1), ("\ufffd\\xedbfbf", 1)]


def test_a_number_that_is_too_long_is_nobody() -> None:
    """Equal decimals are written in several ways, and were several persons."""
    users = [Decimal("1E+20000"), Decimal("10E+19999"), 10**20000, Fraction(10**20000), 7]
    users += [Decimal("1E-20000"), Decimal("10E-20001"), Fraction(1, 10**20000), True]
    users += [(Decimal("1E+20000"), 1), (Decimal("10E+19999"), 1), Decimal("-1E+20000")]
    frame = pandas.DataFrame({"user": pandas.Series(users, dtype=object)})
    frame["place"] = "park"
    limit = sys.get_int_max_str_digits()
    try:
        for digits in (limit, 0):  # Python itself may write long numbers, or not
            sys.set_int_max_str_digits(digits)
            assert FrameSource(frame).leading_counts(QUERY) == [("park", 2)]
    finally:
        sys.set_int_max_str_digits(limit)


class Flags(enum.Flag, boundary=enum.KEEP):  # type: ignore[call-arg,misc,unused-ignore]
    """Flags beyond those that have a name."""

    READ = 1


class Classless:
    """An object that does not say what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise ValueError("a person's value")

    def __str__(self) -> str:
        return "nothing"


class OwnText(str):
    """A text with code of its own."""

    __slots__ = ()

    def encode(self, *_: Any) -> bytes:
        raise ValueError("a person's value")


class Written:
    """An object whose text is such a one."""

    def __str__(self) -> str:
        return OwnText("tea")


APART: dict[str, list[Any]] = {
    "interfaces": [ipaddress.ip_interface(f"10.0.0.1/{bits}") for bits in (8, 16, 32)]
    + [ipaddress.ip_interface("::1/8"), ipaddress.ip_interface("::1/16")],
    "their address": [ipaddress.ip_interface("10.0.0.1/32"), ipaddress.ip_address("10.0.0.1")],
    "flags without a name": [Flags(8), Flags(16), Flags(0), Flags.READ],
}
TIME: Any = numpy.datetime64
SPAN: Any = numpy.timedelta64
BEYOND = [
    *(TIME(2**62, "s"), TIME(2**60, "Y"), TIME(1, "as")),
    *(SPAN(2**62, "W"), SPAN(2**62, "ms"), SPAN(1, "fs"), SPAN(2**62, "Y")),
]
"""Times of NumPy that it writes as those of others in microseconds, nanoseconds or months."""


@pytest.mark.parametrize("people", APART.values(), ids=APART)
def test_objects_that_differ_are_different_people(people: list[Any]) -> None:
    """One person's items pushed out those of another, whose text was the same."""
    users = pandas.Series([one for one in people for _ in range(2)], dtype=object)
    frame = pandas.DataFrame({"user": users, "place": ["park", "pier"] * len(people)})
    assert dict(FrameSource(frame).leading_counts(QUERY)) == dict.fromkeys(
        ("park", "pier"), len(people)
    )


def test_a_time_of_numpy_beyond_its_bits_is_nobody() -> None:
    near = [TIME(0, "s"), SPAN(0, "s"), SPAN(0, "M")]
    near += [TIME(10**18, "as"), TIME(3, "25s")]  # whole seconds
    frame = pandas.DataFrame({"user": pandas.Series([*near, *BEYOND], dtype=object)})
    frame["place"] = "park"
    assert FrameSource(frame).leading_counts(QUERY) == [("park", len(near))]


def test_code_of_an_object_fails_nobody() -> None:
    users = pandas.Series(["ann", Classless(), Written()], dtype=object)
    places = pandas.Series(["tea", Classless(), Written()], dtype=object)
    frame = pandas.DataFrame({"user": users, "place": ["tea", "tea", "tea"]})
    assert FrameSource(frame).leading_counts(QUERY)[0][0] == "tea"
    frame = pandas.DataFrame({"user": ["ann", "bob", "cy"], "place": places})
    assert FrameSource(frame).leading_counts(QUERY) == [("tea", 2), ("nothing", 1)]


def test_persons_of_a_type_that_pandas_cannot_judge() -> None:
    for kind in (pyarrow.string_view(), pyarrow.binary_view()):
        users = pandas.arrays.ArrowExtensionArray(pyarrow.array(["ann", "bob"]).cast(kind))
        frame = pandas.DataFrame({"user": users, "place": ["park", "park"]})
        assert FrameSource(frame).leading_counts(QUERY) == [("park", 2)]


FAR = 2**62
"""Further off in seconds or milliseconds than DuckDB's microseconds reach."""
NOT_UNICODE = pyarrow.Array.from_buffers(
    pyarrow.string(), 1, [None, *map(pyarrow.py_buffer, (bytes([0, 0, 0, 0, 1, 0, 0, 0]), b"\xff"))]
)


def arrow_of(kind: Any) -> Any:
    """A value that everybody can have, and one that is in the type and not in DuckDB's."""
    if kind == "text":
        return pyarrow.chunked_array([["tea"], NOT_UNICODE])
    width = pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()
    far = 2**31 - 1 if kind.bit_width == 32 else FAR
    return pyarrow.chunked_array([pyarrow.array([5, far], width).view(kind)])


KINDS = [
    *(pyarrow.timestamp(unit, zone) for unit in ("s", "ms") for zone in (None, "UTC")),
    *(pyarrow.duration("s"), pyarrow.duration("ms"), pyarrow.time32("s"), pyarrow.time64("ns")),
    "text",
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_value_beyond_duckdbs_types_is_missing(kind: Any) -> None:
    frame = pyarrow.table({"user": ["ann", "bob"], "place": arrow_of(kind)})
    expected = FrameSource(frame.slice(0, 1)).leading_counts(QUERY)
    assert len(expected) == 1
    frames = [frame]
    if kind != "text" and pyarrow.types.is_timestamp(kind):
        held = pandas.Series(pandas.array(frame["place"], dtype=pandas.ArrowDtype(kind)))
        ints = pandas.Series([5, FAR]).to_numpy().view(f"datetime64[{kind.unit}]")
        frames += [pandas.DataFrame({"user": ["ann", "bob"], "place": one}) for one in (held, ints)]
    for one in frames:
        found = FrameSource(one).leading_counts(QUERY)
        assert len(found) == 1
        assert str(found[0][0])[:19] == str(expected[0][0])[:19]


def plain_dates(dates: Any) -> Any:
    return dates


def coded_dates(dates: Any) -> Any:
    codes = pyarrow.array(range(len(dates)), pyarrow.int8())
    return pyarrow.DictionaryArray.from_arrays(codes, dates)


@pytest.mark.parametrize("made", [plain_dates, coded_dates])
@pytest.mark.parametrize("through", ["arrow", "pandas"])
def test_days_beyond_duckdbs_are_nobody(made: Any, through: str) -> None:
    """DuckDB's days have 32 bits: those 2^32 days apart were one person, who is capped as one."""
    days = [0, 1, 2**31 - 1, 1 - 2**31, 2**32, 2**32 + 1, 2**31, -(2**31)]
    dates = pyarrow.array([day * 86_400_000 for day in days], pyarrow.int64())
    frame: Any = pyarrow.table(
        {"user": made(dates.view(pyarrow.date64())), "place": [f"p{day}" for day in days]}
    )
    if through == "pandas":
        frame = frame.to_pandas(types_mapper=pandas.ArrowDtype)
    known = [(f"p{day}", 1) for day in days[:4]]
    for salt in range(9):
        capped = CountQuery("place", "user", rows=9, max_items=1, salt=bytes([salt] * 16))
        assert sorted(FrameSource(frame).leading_counts(capped)) == sorted(known)


def test_what_is_not_unicode_within_a_list_is_its_rows_alone() -> None:
    """Arrow looks at the parts of all rows where it is asked for one."""
    texts = pyarrow.concat_arrays([pyarrow.array(["tea"] * 5), NOT_UNICODE])
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(range(7), pyarrow.int32()), texts)
    records = pyarrow.StructArray.from_arrays([texts], names=["a"])
    coded = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * 5 + [9], pyarrow.int32()), texts, safe=False
    )
    for places in (lists, records, coded):
        frame = pyarrow.table({"user": list("abcdef"), "place": places})
        assert [count for _, count in FrameSource(frame).leading_counts(QUERY)] == [5]


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.list_(pyarrow.timestamp("s")),
        pyarrow.struct([("a", pyarrow.dictionary(pyarrow.int8(), pyarrow.time64("us")))]),
        pyarrow.run_end_encoded(pyarrow.int32(), pyarrow.string()),
        pyarrow.json_(),
    ],
    ids=str,
)
def test_types_with_parts_that_cannot_be_replaced_are_refused(kind: Any) -> None:
    frame = pyarrow.table({"user": pyarrow.array([], pyarrow.string()), "place": kind_of(kind)})
    with pytest.raises(DataIndependentFailure, match="make text of it"):
        FrameSource(frame).leading_counts(QUERY)


def kind_of(kind: Any) -> Any:
    return pyarrow.chunked_array([], kind)


def test_times_without_a_text_fail_nobody(tmp_path: Path) -> None:
    """DuckDB fails on them, and the caller's database with it; of a dictionary it casts all."""
    lowest = pyarrow.array([5, -(2**63) + 2]).view(pyarrow.timestamp("us"))
    frame = pyarrow.table({"user": ["ann", "bob"], "place": lowest})
    pyarrow_parquet.write_table(frame, tmp_path / "times.parquet", use_dictionary=True)
    expected = [("1970-01-01 00:00:00.000005", 1), ("a time that has no text", 1)]
    text = CountQuery(Expression("CAST(place AS TEXT)"), "user", rows=9)
    for query in (QUERY, text):
        for source in (FrameSource(frame), FileSource(tmp_path / "times.parquet")):
            assert source.leading_counts(query) == expected
    by_time = CountQuery("user", "place", rows=9)
    assert len(FileSource(tmp_path / "times.parquet").leading_counts(by_time)) == 2
    seconds = pyarrow.array([5, FAR, None, 2**63 - 1]).view(pyarrow.timestamp("s"))
    frame = pyarrow.table({"user": list("abcd"), "place": seconds})
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        found = OpenConnection(connection, "t").leading_counts(QUERY)
    assert found == [("1970-01-01 00:00:05", 1), ("a time that has no text", 1), ("infinity", 1)]


def test_times_without_a_text_fail_nobody_in_expressions_and_are_refused_in_lists() -> None:
    first = "('290309-12-22 (BC) 00:00:00' :: TIMESTAMP)"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (user TEXT, place TIMESTAMP, l TIMESTAMP[], a STRUCT(b TIMESTAMPTZ))"
        )
        connection.execute("INSERT INTO t (user, place) VALUES ('ann', '2024-05-01 10:00:00')")
        connection.execute(f"INSERT INTO t (user, place) VALUES ('zoe', {first})")
        for text in ("coalesce(place, place)", "case when user > 'a' then place end"):
            query = CountQuery(Expression(text), "user", rows=9)
            found = dict(OpenConnection(connection, "t").leading_counts(query))
            assert found == {"2024-05-01 10:00:00": 1, "a time that has no text": 1}
        for name in ("l", "a"):
            with pytest.raises(DataIndependentFailure, match="holds times in lists, records"):
                OpenConnection(connection, "t").leading_counts(CountQuery(name, "user", rows=9))


def test_persons_that_are_times_without_a_text_stay_apart() -> None:
    """One that took another's name would push their item out of the cap."""
    with duckdb.connect() as connection:
        for kind in ("TIMESTAMP", "TIMESTAMPTZ"):
            connection.execute(f"CREATE OR REPLACE TABLE t (user {kind}, place TEXT)")
            for day, place in ((22, "tea"), (23, "milk")):
                user = f"290309-12-{day} (BC) 00:00:00"
                connection.execute(f"INSERT INTO t VALUES ('{user}', '{place}')")
            for salt in range(4):
                query = CountQuery("place", "user", rows=9, max_items=1, salt=bytes([salt]) * 16)
                found = OpenConnection(connection, "t").leading_counts(query)
                assert found == [("milk", 1), ("tea", 1)]
        connection.execute("CREATE TABLE s (user TIMESTAMP_S, place TEXT)")
        with pytest.raises(DataIndependentFailure, match="cannot identify people"):
            OpenConnection(connection, "s").leading_counts(QUERY)


def test_columns_of_maps_are_refused() -> None:
    """One row may have a key twice."""
    kind = pyarrow.list_(pyarrow.map_(pyarrow.string(), pyarrow.int8()))
    frame = pyarrow.table({"user": ["ann"], "place": pyarrow.array([[[("a", 1)]]], kind)})
    with pytest.raises(DataIndependentFailure, match="make text of it"):
        FrameSource(frame).leading_counts(QUERY)


def test_polars_objects_are_refused() -> None:
    """DuckDB would count their addresses: fifty equal texts would be fifty persons."""
    polars: Any = pytest.importorskip("polars")
    users = polars.Series("user", ["".join(["an", "n"]) for _ in range(9)], dtype=polars.Object)
    frame = polars.DataFrame({"user": users, "place": ["tea"] * 9})
    with pytest.raises(DataIndependentFailure, match="is of type Object"):
        FrameSource(frame).leading_counts(QUERY)


def test_the_receipt_says_that_pandas_infers() -> None:
    frame = pandas.DataFrame({"user": [f"u{n}" for n in range(500)], "place": ["park"] * 500})
    release = top_k(frame, item="place", person="user", k=1, epsilon=1)
    assert "dtypes of the data frame were declared" in str(dict(release.receipt)["Assumes"])
    arrow = top_k(pyarrow.table(frame), item="place", person="user", k=1, epsilon=1)
    assert "Assumes" not in dict(arrow.receipt)


def parquet(path: Path, rows: Sequence[tuple[Any, str]], kind: str) -> None:
    table = {"user": pyarrow.array([row[0] for row in rows], kind)}
    table["place"] = pyarrow.array([row[1] for row in rows])
    import pyarrow.parquet as files  # type: ignore[import-untyped,unused-ignore]

    files.write_table(pyarrow.table(table), path)


def test_files_of_other_types_are_named(tmp_path: Path) -> None:
    """Cast to the first file's type, 1.5 and 2.4 would become one person."""
    parquet(tmp_path / "a.parquet", [(1, "park")], "int64")
    parquet(tmp_path / "b.parquet", [(1.5, "park"), (2.4, "pier")], "float64")
    with pytest.raises(DataIndependentFailure) as caught:
        FileSource(tmp_path / "*.parquet").leading_counts(QUERY)
    assert str(caught.value) == (
        "column 'user' is BIGINT in a.parquet and DOUBLE in b.parquet; files that are read "
        "together need the same types"
    )
    parquet(tmp_path / "b.parquet", [(2, "park")], "int64")
    assert FileSource(tmp_path / "*.parquet").leading_counts(QUERY) == [("park", 2)]


def test_decimals_of_parquet_that_duckdb_reads_as_floats_are_no_persons(tmp_path: Path) -> None:
    """Of more than 38 digits: ten persons of neighbouring numbers were one."""
    path = tmp_path / "visits.parquet"
    users = pyarrow.array([Decimal(2**60 + n) for n in range(10)], pyarrow.decimal256(40, 0))
    table = pyarrow.table({"user": users, "place": ["park"] * 10})
    pyarrow_parquet.write_table(table, path)
    with pytest.raises(DataIndependentFailure, match=r"'user' of visits.parquet cannot identify"):
        FileSource(path).leading_counts(QUERY)
    times = pyarrow.array(range(10), pyarrow.timestamp("ns"))
    table = table.set_column(0, "user", times)
    pyarrow_parquet.write_table(table, path, use_deprecated_int96_timestamps=True)
    with pytest.raises(DataIndependentFailure, match="times of INT96, only in part"):
        FileSource(path).leading_counts(QUERY)
    floats = table.set_column(0, "user", times.cast("int64").cast("double"))
    texts_within = pyarrow.array([{"user": "ann"}] * 10)  # of a record, as deep as it may be
    pyarrow_parquet.write_table(floats.append_column("sender", texts_within), path)
    assert FileSource(path).leading_counts(QUERY) == [("park", 10)]


@pytest.mark.parametrize("before", [{"user": ["ann"] * 10}, {"user": [{"b": [[1], []]}] * 10}])
def test_the_column_is_found_by_its_place(tmp_path: Path, before: dict[str, list[object]]) -> None:
    """Of columns whose names differ in case alone, DuckDB calls the second USER_1."""
    path = tmp_path / "visits.parquet"
    times = pyarrow.array(range(10), pyarrow.timestamp("ns"))
    table = pyarrow.table(before | {"USER": times, "place": ["park"] * 10})
    pyarrow_parquet.write_table(table, path, use_deprecated_int96_timestamps=True)
    with pytest.raises(DataIndependentFailure, match="times of INT96, only in part"):
        FileSource(path).leading_counts(CountQuery("place", "USER_1", rows=3))
    decimals = pyarrow.array([{"user": Decimal(1)}] * 10, pyarrow.struct({"user": WIDE}))
    floats = times.cast("int64").cast("double")
    pyarrow_parquet.write_table(
        pyarrow.table({"record": decimals, "user": floats, "place": ["park"] * 10}), path
    )
    assert FileSource(path).leading_counts(QUERY) == [("park", 10)]


def test_one_number_does_not_decide_how_what_is_no_number_is_read(tmp_path: Path) -> None:
    """The least and largest number of a Parquet file, by which rows are skipped, leave out NaN."""
    values, path = [float("nan")] * 3, tmp_path / "e.parquet"
    of_n = Expression("CASE WHEN n > 2 THEN 'large' ELSE 'small' END")
    asked = [CountQuery("place", "user", 9, (("n", ">", 2),)), CountQuery(of_n, "user", 9)]
    for more in ([], [1.0]):  # one person more
        users, number = ["ann", "bob", "cy", "zoe"][: 3 + len(more)], [*values, *more]
        frame = {"user": users, "place": ["park"] * len(users), "n": number}
        pyarrow_parquet.write_table(pyarrow.table(frame), path)
        small = [("small", 1)] * len(more)
        with duckdb.connect() as connection:
            connection.execute(f"CREATE VIEW v AS FROM read_parquet('{path}')")
            trusted = OpenConnection(connection, "v", trust_view=True)
            for source in (FileSource(path), trusted):
                found = [source.leading_counts(query) for query in asked]
                assert found == [[("park", 3)], [("large", 3), *small]]


def test_moments_of_pandas_that_lose_their_nanoseconds_are_no_persons() -> None:
    """Five persons, a nanosecond apart, were one."""
    users = pandas.Series(pandas.to_datetime(range(5), unit="ns", utc=True))
    frame = pandas.DataFrame({"user": users.dt.as_unit("ns"), "place": ["park"] * 5})
    with pytest.raises(DataIndependentFailure, match="zone without their nanoseconds"):
        FrameSource(frame).leading_counts(QUERY)
    plain = frame.assign(user=frame["user"].dt.tz_localize(None))
    assert FrameSource(plain).leading_counts(QUERY) == [("park", 5)]


WIDE = pyarrow.decimal256(40, 0)

REFUSED = {
    "UNION(a INTEGER, b VARCHAR)": "(1), ('1')",
    "VARIANT": "(1), ('1')",
    "VARCHAR[]": "(['a', 'b']), (['a, b'])",
    "STRUCT(a VARCHAR)": "({'a': 'x'})",
    "JSON": "('1'), ('1.0')",
    "INTERVAL": "(INTERVAL 1 MONTH), (INTERVAL 30 DAY)",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_types_that_merge_or_split_persons_are_refused(kind: str) -> None:
    with duckdb.connect() as connection:
        try:
            connection.execute(f'CREATE TABLE t ("user" {kind}, place VARCHAR)')
        except duckdb.Error:
            pytest.skip(f"this DuckDB has no {kind}")
        connection.execute(f"INSERT INTO t SELECT *, 'park' FROM (VALUES {REFUSED[kind]})")
        with pytest.raises(DataIndependentFailure, match=r"cannot identify people|or variants"):
            OpenConnection(connection, "t").leading_counts(QUERY)


def test_json_persons_are_told_apart_by_type_and_exact_value(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    persons = ["1", '"1"', "123456789012345678901", "123456789012345678902", "true", '"true"']
    none = ["123456789012345678901.25", "123456789012345678901.5", "1e400", "null", "[1]"]
    lines = [f'{{"user": {person}, "place": "park"}}\n' for person in [*persons, *none]]
    path.write_text("".join(lines), encoding="utf-8")
    assert FileSource(path).leading_counts(QUERY) == [("park", len(persons))]


@pytest.mark.parametrize("guess", ["ann", "user"])
def test_a_guessed_value_does_not_show_the_first_row(tmp_path: Path, guess: str) -> None:
    path = tmp_path / "e.csv"
    path.write_text("ann,CANARY,user\nbob,tea,x\n", encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        FileSource(path).leading_counts(CountQuery("place", guess, rows=9))
    assert "CANARY" not in str(caught.value)
