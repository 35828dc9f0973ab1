"""Event files as tables that DuckDB reads: text formats as text, Parquet by its types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from topsecret.errors import DataIndependentFailure
from topsecret.sources.engines.duckdb_types import check_texts, kinds
from topsecret.sources.engines.files import (
    EventFile,
    check_columns,
    literal_pattern,
)
from topsecret.sources.session import Relation
from topsecret.sources.source import Columns, Kind
from topsecret.sources.sql.dialects import MARK
from topsecret.sources.sql.statements import call, named, record
from topsecret.sources.sql.statements import column as column_of

if TYPE_CHECKING:
    from topsecret.sources.engines.duckdb_session import DuckSession


CUT = {"DOUBLE", "TIMESTAMP"}
"""Types as which DuckDB may read the first digits of a longer type of Parquet."""


def file_relation(
    session: DuckSession,
    files: Sequence[EventFile],
    header: tuple[str, ...] | None,
    columns: Sequence[str],
    person: str | None = None,
) -> Relation:
    """The table function over these files, with the columns wanted."""
    first, more = files[0], files[1:]
    if first.format == "Parquet":
        found = [session.types(scan(file, (), ())) or {} for file in files]
        check_columns(first, columns, tuple(found[0]))
        check_texts(first.path.name, columns, found[0])
        check_types(files, [{n: t for n, t in types.items() if n in columns} for types in found])
        if person is not None and found[0].get(person) in CUT:
            for file, types in zip(files, found, strict=True):
                _check_whole(session, file, person, list(types).index(person))
        return scan(first, columns, (), more), kinds(found[0])
    if header is None:  # of JSON lines: a field that no line has is missing in all of them
        header = tuple(columns)
    check_columns(first, columns, header)
    texts: dict[str, Kind] = dict.fromkeys(columns, "text")
    if first.format != "JSON lines" or person is None or person not in columns:
        return scan(first, columns, header, more), texts
    lines = scan(first, columns, header, more, person)
    return _exact_persons(lines, columns, person), Columns(texts, marked={person})


def _check_whole(session: DuckSession, file: EventFile, person: str, place: int) -> None:
    """The footer, which is public, has no decimals of over 38 digits nor times of nanoseconds.

    Looked at is the column in this place: by name it may be another's field, and of two columns
    whose names differ in case alone DuckDB calls one otherwise.
    """
    cut = (
        "SELECT coalesce(num_children, 0), coalesce(type = 'INT96' OR type LIKE '%BYTE_ARRAY' AND "
        "(converted_type = 'DECIMAL' OR logical_type LIKE 'Decimal%'), false) "
        "FROM parquet_schema(?) ORDER BY column_id"
    )
    _, *nodes = session.ask(cut, [literal_pattern(str(file.path))])  # the first holds all columns
    inside, tops = 0, []
    for children, is_cut in nodes:
        if not inside:
            tops.append(is_cut)
        inside = max(inside - 1, 0) + children
    if tops[place]:
        raise DataIndependentFailure(
            f"the column {person!r} of {file.name} cannot identify people: DuckDB reads decimals "
            "of more than 38 digits, and times of INT96, only in part; write it as text"
        )


def scan(
    file: EventFile,
    wanted: Sequence[str],
    columns: Iterable[str],
    more: Sequence[EventFile] = (),
    person: str | None = None,
) -> exp.Table | exp.Subquery:
    """What reads a file, all text in the text formats.

    ``more`` files of the same kind are read after it. Of JSON lines the column of
    the ``person`` is left as JSON. Of CSV a row with a value over several lines fails the whole,
    unless they are declared.
    """
    path: str | list[str] = literal_pattern(str(file.path))
    if more:
        path = [literal_pattern(str(one.path)) for one in (file, *more)]
    if file.format == "Parquet":
        # Else DuckDB believes a column's least and largest number, which leave out NaN, and skips
        # such rows, or takes a condition for true of them, by the numbers of other rows.
        nan = exp.true()
        return call("READ_PARQUET", path, hive_partitioning=exp.false(), can_have_nan=nan)
    packing = "uncompressed" if file.compression == "none" else file.compression
    compression = exp.Literal.string(packing)
    if file.format == "JSON lines":
        return call(
            "READ_JSON",
            path,
            format=exp.Literal.string("newline_delimited"),
            compression=compression,
            columns=record({name: "JSON" if name == person else "VARCHAR" for name in wanted}),
        )
    names = _distinct(wanted, columns)
    rows = call(
        "READ_CSV",
        path,
        auto_detect=exp.false(),
        header=exp.true() if file.header is None else exp.false(),
        delim=exp.Literal.string(file.delimiter),
        quote=exp.Literal.string('"'),
        escape=exp.Literal.string('"'),
        compression=compression,
        columns=record(dict.fromkeys(names, "VARCHAR")),
    )
    return rows if file.multiline else _one_line_each(rows, wanted, names)


def _one_line_each(rows: exp.Table, wanted: Sequence[str], names: Sequence[str]) -> exp.Subquery:
    """The rows, of which any that holds a line end fails whatever reads it.

    A quote that one row leaves open takes in the rows after it, up to the next quote: no reader can
    tell this from a value over several lines. Every column that a statement may read stands behind
    the check, which looks at all columns, so that no condition can pass over such a row.
    """

    def of(name: str, table: str) -> exp.Column:
        return exp.column(name, table, quoted=True)

    whole = exp.Anonymous(this="CONCAT", expressions=[of(name, "rows") for name in names])
    ends = [exp.Anonymous(this="CHR", expressions=[exp.Literal.number(one)]) for one in (10, 13)]
    broken = exp.or_(
        *(exp.Anonymous(this="CONTAINS", expressions=[whole.copy(), end]) for end in ends)
    )
    mark = _apart("several lines", {name.casefold() for name in wanted})
    fails = exp.Anonymous(this="ERROR", expressions=[exp.Literal.string("several lines")])
    read: Any = exp.alias_(rows, "rows", table=True, quoted=True)
    marked: Any = exp.select(
        *(of(name, "rows") for name in wanted), exp.alias_(broken, mark, quoted=True)
    )
    marked = exp.alias_(marked.from_(read).subquery(), "marked", table=True, quoted=True)
    checked = [
        exp.case().when(of(mark, "marked"), fails.copy()).else_(of(name, "marked"))
        for name in wanted
    ]
    shown = [exp.alias_(one, n, quoted=True) for one, n in zip(checked, wanted, strict=True)]
    return exp.select(*shown).from_(marked).subquery()


def _exact_persons(scan: exp.Expression, wanted: Sequence[str], person: str) -> exp.Expression:
    """JSON lines, the person read as JSON: text stays as it is, all else is kept apart from it.

    1 and "1" are two people. A number with a fraction or an exponent is none: DuckDB reads it as
    a float, and two of them may become one.
    """
    value = column_of(person, "lines")
    written = exp.cast(value.copy(), exp.DataType.Type.VARCHAR)
    text = exp.Anonymous(
        this="JSON_EXTRACT_STRING", expressions=[value.copy(), exp.Literal.string("$")]
    )
    whole = exp.RegexpLike(this=written.copy(), expression=exp.Literal.string("^-?[0-9]+$"))
    marks = exp.Anonymous(this="STARTS_WITH", expressions=[text.copy(), exp.Literal.string(MARK)])

    def is_a(name: str) -> exp.Expression:
        held = exp.Anonymous(this="JSON_TYPE", expressions=[value.copy()])
        return exp.EQ(this=held, expression=exp.Literal.string(name))

    def marked(name: str, shown: exp.Expression) -> exp.Expression:
        mark = exp.Literal.string(f"{MARK}{name}:")
        return exp.DPipe(this=mark, expression=shown.copy(), safe=False)

    kept = (
        exp.case()
        .when(exp.and_(is_a("VARCHAR"), marks), marked("text", text))
        .when(is_a("VARCHAR"), text)
        .when(whole, marked("number", written))
        .when(is_a("BOOLEAN"), marked("boolean", written))
    )
    shown = [named(kept if n == person else column_of(n, "lines"), n) for n in wanted]
    lines: Any = exp.alias_(scan, "lines", table=True, quoted=True)
    return exp.select(*shown).from_(lines).subquery()


def _distinct(wanted: Sequence[str], columns: Iterable[str]) -> list[str]:
    """All columns in order; those not wanted get names that clash with nothing."""
    taken = {column.casefold() for column in wanted}
    names = []
    for position, column in enumerate(columns, start=1):
        name = column
        if column not in wanted:
            name = _apart(f"unused {position}", taken)
        names.append(name)
    return names


def _apart(name: str, taken: set[str]) -> str:
    """The name, longer where it would clash with one of these."""
    while name.casefold() in taken:
        name += "_"
    return name


def check_types(files: Sequence[EventFile], found: Sequence[Mapping[str, str]]) -> None:
    """Parquet files that are read together hold the same types in the columns that are read.

    DuckDB would cast the later files to the first one's types: 1.5 and 1.75 of a column of floats
    would become one whole number, and a value too large for it would fail the query.
    """
    for file, types in zip(files[1:], found[1:], strict=True):
        for name, type_name in found[0].items():
            if types.get(name) != type_name:
                held = types.get(name, "missing")
                raise DataIndependentFailure(
                    f"column {name!r} is {type_name} in {files[0].name} and {held} in "
                    f"{file.name}; files that are read together need the same types"
                )
