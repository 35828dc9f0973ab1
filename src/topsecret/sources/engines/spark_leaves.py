"""What a Spark frame reads: tables, files and rows that are kept, or queries and code.

A table of JDBC may be a query, an RDD runs Python, a reader may fail on one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAVES = {
    "DataSourceV2Relation",
    "ExternalRDD",
    "HiveTableRelation",
    "InMemoryRelation",
    "LocalRelation",
    "LogicalRDD",
    "LogicalRelation",
    "Range",
}
FILES = "HadoopFsRelation"
"""Spark's own tables and files. Other relations, such as JDBC's, may be queries and views."""
STORED_TABLES = {
    "AvroTable",
    "CSVTable",
    "DeltaTableV2",
    "JsonTable",
    "OrcTable",
    "ParquetTable",
    "SparkTable",
    "TextTable",
}
"""Of Spark's second interface, where a table may also be a query or Python code."""
FAILS = "FAILFAST"
"""The mode of a reader that fails on a row that does not suit."""
STORED_RDDS = {
    "LocalCheckpointRDD",
    "MapPartitionsRDD",
    "ParallelCollectionRDD",
    "ReliableCheckpointRDD",
}
"""Rows that are there: of others, code makes them when they are read."""


def leaves(frame: DataFrame) -> frozenset[str]:
    """What tells the tables and files of a frame from others: no row is read for it."""
    found = {f"file {path}" for path in frame.inputFiles()}
    plan = plan_of(frame)
    for node in () if plan is None else nodes_of(plan):
        operator = kind_of(node)
        if operator == "LogicalRelation":
            if not _is_files(node.relation()):  # which tables it reads is not looked for
                found.add(kind_of(node.relation()))
        elif operator in {"InMemoryRelation", "LocalRelation"}:
            found.add(f"{operator} {node}")
        elif operator != "Range":
            found |= tables_of(node)
    return frozenset(found)


def tables_of(node: Any) -> set[str]:
    """What a leaf of a plan reads: the same names wherever rows may be the same; else nothing."""
    operator = kind_of(node)
    if operator in {"ExternalRDD", "LogicalRDD"}:
        return {f"rdd {node.rdd().id()}"}
    if operator == "LogicalRelation" and _is_files(node.relation()):
        return {f"file {path}" for path in node.relation().location().inputFiles()}
    if operator == "DataSourceV2Relation":
        return {f"table {node.catalog()} {node.identifier()} {node.table().name()}"}
    if operator == "HiveTableRelation":
        return {f"table {node.tableMeta().identifier()}"}
    return {operator} if operator in LEAVES else set()


def read_as(node: Any) -> str:
    """What decides beside a column's name which values it has: those of CSV go by their order."""
    operator = kind_of(node)
    if operator == "LogicalRelation" and _is_files(node.relation()):
        options = node.relation().options()
    else:
        options = node.options() if operator == "DataSourceV2Relation" else ""
    return f"{node.schema().catalogString()} {options}"


def is_stored(node: Any, operator: str) -> bool:
    """Whether a leaf's rows are kept somewhere, row by row."""
    if operator == "LogicalRelation":
        options = node.relation().options() if _is_files(node.relation()) else FAILS
        return FAILS not in str(options).upper()
    if operator == "DataSourceV2Relation":
        return kind_of(node.table()) in STORED_TABLES and FAILS not in str(node.options()).upper()
    return True


def _is_files(relation: Any) -> bool:
    """Whether it is Spark's relation of files, or one that is made of it, such as Delta's."""
    kind = relation.getClass()
    while kind is not None and kind.getSimpleName() != FILES:
        kind = kind.getSuperclass()
    return kind is not None


def runs_code(frame: DataFrame) -> bool:
    """Whether rows come of an RDD, which code makes when it is read: nobody looks into that.

    Those of ``createDataFrame`` on a list do, too: Spark keeps the list as such an RDD.
    """
    plan = plan_of(frame)
    nodes = () if plan is None else nodes_of(plan)
    waiting = [node.rdd() for node in nodes if kind_of(node) in {"ExternalRDD", "LogicalRDD"}]
    while waiting:
        one = waiting.pop()
        if kind_of(one) not in STORED_RDDS:
            return True
        waiting += [dependency.rdd() for dependency in each(one.dependencies())]
    return False


def kind_of(node: Any) -> str:
    """The name of its class."""
    return str(node.getClass().getSimpleName())


def plan_of(frame: Any) -> Any:
    """The analysed plan; None for a frame of a remote session."""
    java = None if type(frame).__module__.startswith("pyspark.sql.connect") else frame._jdf
    return None if java is None else java.queryExecution().analyzed()


def nodes_of(plan: Any) -> Iterator[Any]:
    """The operators of a plan."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += each(node.children())


def each(sequence: Any) -> list[Any]:
    """The parts of a sequence of Scala's."""
    return [sequence.apply(place) for place in range(sequence.size())]
