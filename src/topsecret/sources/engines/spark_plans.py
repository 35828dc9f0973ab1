"""A Spark data frame is a plan: it is analysed as views are, before any row is read.

Accepted are projections, filters and unions over tables, and DISTINCT or GROUP BY with the person
among the keys; limits, samples, joins, windows and whatever changes from run to run are refused.
The plan is the analysed one, which holds the definitions of all views.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from topsecret.sources.sql.relations import Stored, refused

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
ROW_WISE = {
    "Filter",
    "Generate",
    "Project",
    "RebalancePartitions",
    "Repartition",
    "RepartitionByExpression",
    "ResolvedHint",
    "Sort",
    "SubqueryAlias",
    "Union",
    "View",
    *LEAVES,
}
"""Operators whose rows each come of one row."""

BY_PERSON = {"Aggregate", "Deduplicate", "Distinct"}
AGGREGATES = {"Count", "Max", "Min"}
CODE = {"ScalaUDF", "PythonUDF", "PythonUDAF", "ScalaUDAF", "WindowExpression"}
WHOLE = {"tinyint", "smallint", "int", "bigint"}
IDENTICAL = {"string", "boolean", *WHOLE, "date", "timestamp", "timestamp_ntz"}
"""Types whose equal values are identical."""

CHANGING = re.compile(
    r"\b(rand|randn|uuid|shuffle|monotonically_increasing_id|current_\w+)\(|query#"
)


def check_plan(frame: DataFrame, person: str, name: str) -> None:
    """Raise ``DataIndependentFailure`` unless each row depends on its own person alone."""
    start = Stored((name,))
    plan = _plan(frame)
    if plan is None:
        _check_text(frame, start)
        return
    own = next((str(one) for one in _each(plan.output()) if one.name() == person), "")
    for node in _nodes(plan):
        operator = str(node.getClass().getSimpleName())
        if operator not in ROW_WISE | BY_PERSON:
            raise refused(start, operator, "makes a row depend on other rows")
        if node.subqueries().size():
            raise refused(start, f"a sub-query in {operator}", "makes a row depend on other rows")
        if operator in BY_PERSON:
            _check_person(node, operator, own, start)
        for expression in _each(node.expressions()):
            _check_expression(expression, operator, start)


def leaves(frame: DataFrame) -> frozenset[str]:
    """What tells the tables and files of a frame from others: no row is read for it."""
    found = {f"file {path}" for path in frame.inputFiles()}
    plan = _plan(frame)
    for node in () if plan is None else _nodes(plan):
        operator = str(node.getClass().getSimpleName())
        if operator == "LogicalRDD":
            found.add(f"rdd {node.rdd().id()}")
        elif operator == "HiveTableRelation":
            found.add(f"table {node.tableMeta().identifier()}")
        elif operator in LEAVES - {"LogicalRelation", "Range"}:
            found.add(f"{operator} {node}")
    return frozenset(found)


def _plan(frame: Any) -> Any:
    """The analysed plan; None for a frame of a remote session."""
    java = None if type(frame).__module__.startswith("pyspark.sql.connect") else frame._jdf
    return None if java is None else java.queryExecution().analyzed()


def _nodes(plan: Any) -> Iterator[Any]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _each(node.children())


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _check_person(node: Any, operator: str, own: str, start: Stored) -> None:
    """The keys hold the person, under the name that the frame has it."""
    if operator == "Aggregate":
        keys = _each(node.groupingExpressions())
    else:
        keys = _each(node.child().output())
    if operator == "Deduplicate" and node.keys().size() < len(keys):
        raise refused(start, operator, "makes a row depend on other rows")
    for key in keys:
        _check_identical(key, operator, start)
    if not any(str(one) == own for one in keys):
        raise refused(start, f"{operator} without the person", "makes a row depend on other rows")


def _check_identical(node: Any, clause: str, start: Stored) -> None:
    """Which of two equal values stands for both may depend on the rows of others."""
    if str(node.dataType().simpleString()) not in IDENTICAL:
        raise refused(start, clause, "may take values for one that are not identical")


def _check_expression(expression: Any, operator: str, start: Stored) -> None:
    if not expression.deterministic():
        raise refused(start, f"an expression in {operator}", "changes from run to run")
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        kind = str(node.getClass().getSimpleName())
        if kind in CODE:
            raise refused(start, kind, "is not known to keep to one row")
        if kind == "AggregateExpression":
            function = str(node.aggregateFunction().getClass().getSimpleName())
            if function not in AGGREGATES:
                raise refused(start, function, "may depend on the order of rows")
            if function != "Count" or node.isDistinct():
                for child in _each(node.aggregateFunction().children()):
                    _check_identical(child, function, start)
        waiting += _each(node.children())


def _check_text(frame: Any, start: Stored) -> None:
    """The plan of a remote session is known by its text alone, which must be whole."""
    text = str(frame._explain_string(extended=True))
    analysed = text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]
    lines = analysed.strip().splitlines()[1:]
    if not lines or "more fields" in analysed or CHANGING.search(analysed):
        raise refused(start, "its plan", "cannot be read, or changes from run to run")
    for line in lines:
        operator = re.match(r"[\s:|+-]*'?(\w+)", line)
        if operator is None or operator[1] not in ROW_WISE | {"Relation"}:
            raise refused(
                start, operator[1] if operator else "its plan", "makes a row depend on other rows"
            )
