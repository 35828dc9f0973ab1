"""Whose a row of a Spark frame is: one person's, by the plan.

A union of senders and receivers, or a list of people that is exploded, makes one row count for
several: then one sender moves a count by all who were written to.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from topsecret.sources.engines.spark_leaves import each, kind_of, nodes_of, read_as, tables_of
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.relations import SEVERAL, refused
from topsecret.sources.sql.stored_definitions import Stored
from topsecret.sources.sql.view_columns import Origins

EXPLODED = "makes several rows of one, whose person must not be what it makes"
UNTRACED = (
    "of projections, or of tables with other columns, hides whose a row is from who sees the "
    "plan's text alone; make the union first, and select columns of it"
)


class _Exploded(Exception):
    """A person is made by what makes several rows of one."""


def check_one_person(plan: Any, person: str, start: Stored) -> None:
    """Raise ``DataIndependentFailure`` unless each stored row counts for one person."""
    if not any(kind_of(node) in {"Union", "Generate"} for node in nodes_of(plan)):
        return
    places = [place for place, one in enumerate(each(plan.output())) if one.name() == person]
    exploded, several = False, False
    for place in places:
        try:
            several = several or _is_of_several(_origins(plan, place))
        except _Exploded:
            exploded = True
    if exploded:
        raise refused(start, "explode", EXPLODED)
    if several:
        raise refused(start, "Union", SEVERAL)


def check_text_of_one_person(analysed: str, person: str, start: Stored) -> None:
    """The same of a plan's text, which tells less: refused is what may be otherwise."""
    made = re.findall(r"\bGenerate .*\[([^\]]*)\]$", analysed, re.MULTILINE)
    named = rf"(^|, ){re.escape(person)}#\d+"
    if "Generate" in analysed and (
        any(re.search(named, names) for names in made) or f" AS {person}#" in analysed
    ):
        raise refused(start, "explode", EXPLODED)
    if not re.search(r"\bUnion\b", analysed):
        return
    columns = re.findall(r"\bRelation [^[]*(\[.*\])", analysed)
    hidden = re.search(r"\bUnion\b.*\b(Project|Generate)\b", analysed, re.DOTALL)
    # One file may be read with its columns in two orders.
    if hidden or len({re.sub(r"#\d+L?", "", one) for one in columns}) > 1:
        raise refused(start, "Union", UNTRACED)


def _is_of_several(origins: Origins) -> bool:
    """Whether two values are of one table."""
    found = {(folded(table), what) for (table,), what in origins}
    return len(found) > len({table for table, _ in found})


def _origins(node: Any, place: int) -> Origins:
    """What a column of an operator is of which tables."""
    operator, children = kind_of(node), each(node.children())
    if operator == "Union":
        return frozenset().union(*(_origins(child, place) for child in children))
    wanted = each(node.output())[place]
    if not children:
        what = f"{wanted.name()} of {read_as(node)}"
        return frozenset({((table,), what) for table in tables_of(node)})
    (child,) = children
    if operator == "Project":
        wanted = each(node.projectList())[place]
    elif operator == "Aggregate":
        wanted = each(node.aggregateExpressions())[place]
    elif operator != "Generate":
        return _origins(child, place)
    while kind_of(wanted) == "Alias":
        wanted = wanted.child()
    if kind_of(wanted) == "AttributeReference":
        return _of_column(wanted, child)
    return _of_expression(wanted, child)


def _of_column(column: Any, child: Any) -> Origins:
    ids = [one.exprId().id() for one in each(child.output())]
    if column.exprId().id() not in ids:
        raise _Exploded
    return _origins(child, ids.index(column.exprId().id()))


def _of_expression(expression: Any, child: Any) -> Origins:
    """An expression by its text, in which the columns have the names that they have below."""
    columns = {str(one): _of_column(one, child) for one in each(expression.references().toSeq())}
    text = str(expression)
    made: set[tuple[tuple[str, ...], str]] = set()
    for table in {table for node in nodes_of(child) for table in tables_of(node)}:
        written, several = text, " more fields" in text  # a text that is cut may be another's
        for name in sorted(columns, key=len, reverse=True):
            held = sorted(what for of, what in columns[name] if of == (table,))
            several = several or len(held) > 1
            written = written.replace(name, " or ".join(held))
        short = hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
        made |= {((table,), f"({short}) {which}") for which in range(1 + several)}
    return frozenset(made)
