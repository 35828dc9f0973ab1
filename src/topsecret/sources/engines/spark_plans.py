"""A Spark data frame is a plan: it is analysed as views are, before any row is read.

Accepted are projections, filters and unions over tables, and DISTINCT or GROUP BY with the person
among the keys; limits, samples, joins, windows and whatever changes from run to run are refused.
The plan is the analysed one, which holds the definitions of all views.

No row may make an expression fail, either: under ANSI mode one text that is no number fails a cast
and with it the whole question. Accepted are the expressions that have a value for every row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from topsecret.errors import DataIndependentFailure
from topsecret.sources.engines.spark_leaves import (
    LEAVES,
    each,
    is_stored,
    kind_of,
    nodes_of,
    plan_of,
)
from topsecret.sources.engines.spark_persons import check_one_person, check_text_of_one_person
from topsecret.sources.sql.relations import refused
from topsecret.sources.sql.stored_definitions import Stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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

TOTAL = {
    *AGGREGATES,
    "AggregateExpression",
    "Alias",
    "And",
    "AttributeReference",
    "Between",
    "CaseWhen",
    "CommonExpressionDef",
    "CommonExpressionRef",
    "Coalesce",
    "Contains",
    "EndsWith",
    "EqualNullSafe",
    "EqualTo",
    "Explode",
    "GetStructField",
    "GreaterThan",
    "GreaterThanOrEqual",
    "If",
    "In",
    "IsNotNull",
    "IsNull",
    "Length",
    "LessThan",
    "LessThanOrEqual",
    "Literal",
    "Lower",
    "Not",
    "Or",
    "PosExplode",
    "SortOrder",
    "StartsWith",
    "StringTrim",
    "StringTrimLeft",
    "StringTrimRight",
    "Upper",
    "With",
}
"""Expressions that have a value, or NULL, whatever their parts hold. The analysed plan has every
cast that Spark adds, say where text is compared with a number."""

BY_CONSTANT = {"Like", "Remainder", "Substring"}
"""Those that have one where all parts but the first are constants."""

DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Of the largest number of each type."""

DAYS = {"date", "timestamp", "timestamp_ntz"}
FLOATS = {"float", "double"}
COMPARISONS = {"Between", "EqualNullSafe", "EqualTo", "In", "With"}
COMPARISONS |= {"GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"}
COLUMNS = {"AttributeReference", "GetStructField"}
BY_OTHERS = "may pass over a row by the numbers of others, where one is NaN or -0.0"
FLOAT_LITERAL = re.compile(r"(?<![\w#])\d+\.\d|\b(NaN|Infinity)\b")
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

WITH_EXPRESSIONS = {"Filter", "Generate", "Project", "RepartitionByExpression", "Sort"}
PART = re.compile(
    r"\s*(?:(?P<operand>\w+#\d+L?(?!\w)|-?\d+(?:[-:.]\d+)*(?!\w)|(?:END|true|false|null)(?!\w)|\))"
    r"|(?P<between>[(,]|[<>=]+|(?:explode|isnotnull|isnull|lower|posexplode|upper)\("
    r"|(?:AND|AS|ASC|CASE|DESC|ELSE|FIRST|IN|LAST|NOT|NULLS|OR|THEN|WHEN)(?![\w(#]))"
    r"|(?P<free>\w+(?![\w(#])|\[)|\])"
)
"""A part of an expression's text: a column or a number, what stands between two of them, or a free
word, which is a literal."""

CHANGING = re.compile(
    r"\b(rand|randn|uuid|shuffle|monotonically_increasing_id|current_\w+)\(|query#"
)


def check_plan(frame: DataFrame, person: str, name: str) -> None:
    """Raise ``DataIndependentFailure`` unless each row depends on its own person alone."""
    start = Stored((name,))
    plan = plan_of(frame)
    if plan is None:
        _check_text(frame, person, start)
        return
    own = next((str(one) for one in each(plan.output()) if one.name() == person), "")
    expressions: list[tuple[Any, str]] = []
    for node in nodes_of(plan):
        operator = kind_of(node)
        if operator not in ROW_WISE | BY_PERSON:
            raise refused(start, operator, "makes a row depend on other rows")
        if node.subqueries().size():
            raise refused(start, f"a sub-query in {operator}", "makes a row depend on other rows")
        if operator in BY_PERSON:
            _check_person(node, operator, own, start)
        if operator in LEAVES and not is_stored(node, operator):
            why = "may be a query of its own, or is read with mode FAILFAST"
            raise refused(start, f"what {operator} reads", why)
        for expression in each(node.expressions()):
            _check_expression(expression, operator, start)
            if _compares_floats(expression):
                raise refused(start, f"a comparison of floats in {operator}", BY_OTHERS)
            expressions.append((expression, operator))
    check_one_person(plan, person, start)
    for expression, operator in expressions:
        _check_total(expression, operator, name)


def _check_person(node: Any, operator: str, own: str, start: Stored) -> None:
    """The keys hold the person, under the name that the frame has it."""
    if operator == "Aggregate":
        keys = each(node.groupingExpressions())
    else:
        keys = each(node.child().output())
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
        kind = kind_of(node)
        if kind in CODE:
            raise refused(start, kind, "is not known to keep to one row")
        if kind == "AggregateExpression":
            function = kind_of(node.aggregateFunction())
            if function not in AGGREGATES:
                raise refused(start, function, "may depend on the order of rows")
            if function != "Count" or node.isDistinct():
                for child in each(node.aggregateFunction().children()):
                    _check_identical(child, function, start)
        waiting += each(node.children())


def _compares_floats(expression: Any) -> bool:
    """Whether a column of floats is compared, of which Spark may make a filter later.

    Whatever the plan reads: files and caches are skipped in parts, and the plan hides a cache.
    """
    compared = (node for node in nodes_of(expression) if kind_of(node) in COMPARISONS)
    parts = (part for node in compared for part in nodes_of(node))
    return any(_type(part) in FLOATS and kind_of(part) in COLUMNS for part in parts)


def _check_total(expression: Any, operator: str, name: str) -> None:
    """Raise unless every part of the expression has a value for every row."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        kind = kind_of(node)
        if _constant(node):
            continue
        if kind == "Cast":
            if not _total_cast(node):
                raise _may_fail(name, f"a cast in {operator}")
        elif kind in BY_CONSTANT:
            if not _total_by_constant(node, kind):
                raise _may_fail(name, f"{kind} in {operator}")
        elif kind not in TOTAL:
            raise _may_fail(name, f"{kind} in {operator}")
        waiting += each(node.children())


def _constant(node: Any) -> bool:
    """Whether it is made of literals and has a value: then it has it for every row."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if kind_of(part) not in {"Cast", "Literal", "UnaryMinus"}:
            return False
        waiting += each(part.children())
    try:
        node.eval(None)
    except Exception:  # whatever it is: it would fail where a row reaches it
        return False
    return True


def _total_by_constant(node: Any, kind: str) -> bool:
    first, *rest = each(node.children())
    if not all(_constant(one) for one in rest):
        return False
    value = str(rest[0].eval(None))
    if kind == "Remainder":
        return _type(first) in DIGITS and value not in {"0", "None"}
    return kind == "Substring" or ("\\" not in value and str(node.escapeChar()) == "\\")


def _type(node: Any) -> str:
    return str(node.dataType().simpleString())


def _total_cast(node: Any) -> bool:
    """Whether a cast has a value for every row: it widens, or makes NULL of what does not fit."""
    held, to = _type(node.child()), _type(node)
    if to == held or held == "void":
        return True
    simple = {"string", "boolean", *DIGITS, *FLOATS, *DAYS}
    if not all(one in simple or DECIMAL.fullmatch(one) for one in (held, to)):
        return False
    if to == "string" or (to == "date" and held in DAYS):
        return True
    if _widens(held, to):
        return True
    mode = str(node.evalMode().toString())
    # Not every day has a time, nor every time one in another zone: that fails in every mode.
    return mode in {"TRY", "LEGACY"} and not {held, to} <= DAYS


def _widens(held: str, to: str) -> bool:
    """Whether every number of one type has one in the other."""
    if to in FLOATS:
        return held in FLOATS or _places(held) is not None
    few, many = _places(held), _places(to)
    if few is None or many is None:
        return False
    return few[0] <= many[0] and few[1] <= many[1]


def _places(kind: str) -> tuple[int, int] | None:
    """How many digits a number may have before and after the point."""
    found = DECIMAL.fullmatch(kind)
    if found:
        return int(found[1]) - int(found[2]), int(found[2])
    return (DIGITS[kind], 0) if kind in DIGITS else None


def _may_fail(name: str, part: str) -> DataIndependentFailure:
    return DataIndependentFailure(
        f"{name} may fail on one person's row: {part} is not known to have a value for every row; "
        "use try_cast, pass the frame without it and write it in item= or where=, or pass "
        "trust_view=True if you know that no row can make it fail"
    )


def _check_text(frame: Any, person: str, start: Stored) -> None:
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
        if operator[1] == "Relation" and not re.search(r"\] [a-z]+$", line):
            raise refused(start, "what Relation reads", "may be a query of its own")
        if operator[1] in WITH_EXPRESSIONS and not total_text(line[operator.end() :]):
            raise _may_fail(".".join(start.name), f"an expression in {operator[1]}")
        if operator[1] in WITH_EXPRESSIONS and FLOAT_LITERAL.search(line):
            raise refused(start, f"a number with a point in {operator[1]}", BY_OTHERS)
    check_text_of_one_person(analysed, person, start)


def total_text(text: str) -> bool:
    """Whether expressions, as a plan shows them, are columns, comparisons and conditions alone.

    >>> total_text(" [u#1, upper(p#2) AS p#3]"), total_text(" [u#1, cast(p#2 as int) AS p#3]")
    (True, False)
    """
    place, after, text = 0, "", text.rstrip()
    while place < len(text):
        part = PART.match(text, place)
        # After an operand a word is an operator (div, RLIKE), and a bracket takes an element.
        if part is None or (part.lastgroup == "free" and after in {"operand", "word"}):
            return False
        after = "word" if part.lastgroup == "free" and part[0][-1] != "[" else part.lastgroup or ""
        place = part.end()
    return True
