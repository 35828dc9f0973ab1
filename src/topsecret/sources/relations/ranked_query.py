"""The outermost SELECT of a query: which items are ranked, by whom counted, how many are wanted.

A query is *layers* around one *counting* SELECT: the one that groups by the items and counts
people. Layers may rename, sort, cut and filter by the count.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sqlglot import exp

from topsecret.sources.measures import Bound
from topsecret.sources.relations.caller_list import MOST_DIGITS, CallerList
from topsecret.sources.relations.catalogue import Catalogue
from topsecret.sources.relations.layers import Layers, Ordering, at_least, ordering
from topsecret.sources.relations.measure import (
    Kind,
    Measure,
    amount_of,
    bound_of,
    measure_of,
    measures_in,
)
from topsecret.sources.relations.privacy_clause import cut
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.query_size import check_size
from topsecret.sources.relations.rebuild import Opened, Rebuilder, parsed
from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import KEYS, OWN, PERSON, RelationColumn, flattened
from topsecret.sources.relations.scope import (
    Expressions,
    Scope,
    columns_read,
    names_person,
    tag_of,
)
from topsecret.sources.sql.expressions import is_deep
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.statements import derived, named

COUNTING_PARTS = {
    "expressions",
    "from_",
    "from",
    "joins",
    "where",
    "group",
    "having",
    "qualify",
    "order",
    "limit",
    "with_",
    "with",
}


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """What a query asks: the rows to count, and the question about them. All public."""

    rows: exp.Select
    """(item, …, own): the rebuilt relation, for the engine's dialect."""
    items: tuple[RelationColumn, ...]
    titles: tuple[str, ...]
    k: int | Literal["auto", "all"]
    counts: bool
    at_least: int | None = None
    smallest: bool = False
    by: int | None = None
    """Which item is the group of a list of its own."""
    groups: tuple[Any, ...] = ()
    domain: exp.Select | None = None
    """All items that may be named, where one public table holds them."""
    max_items: int | None = None
    measure: Kind = "persons"
    amount: RelationColumn | None = None
    """What is summed, a column of the rows."""
    amount_title: str = ""
    bound: Bound | None = None
    """How much one person adds to an item at most, where the query's options or the file say."""
    epsilon: str | None = None
    delta: str | None = None
    shared_rows: bool = False
    """Whether rows may belong to several people, because a key is not unique."""
    dialect: str = "duckdb"
    owner_kind: str = "text"
    tables: tuple[str, ...] = ()
    """What the query reads, for the receipt."""


def read(
    text: str, file: PrivacyFile, catalogue: Catalogue, dialect: str = "", *, bounded: bool = False
) -> RankedQuery:
    """The question that a query asks, or a refusal that names the clause.

    ``bounded``: the caller has a bound for what one person adds to one item, so that COUNT(*) and
    SUM may rank.
    """
    spoken = dialect or catalogue.dialect
    text, options = cut(text, spoken)
    try:
        if is_deep(text, spoken):
            raise RecursionError
        tree = parsed(text, spoken)
        check_size(tree, catalogue, file)
        return _Reading(file, catalogue, bounded).query(tree, options)
    except RecursionError:
        raise QueryRefused("text", "the query is nested too deeply; flatten it") from None


@dataclass(slots=True)
class _Reading:
    file: PrivacyFile
    catalogue: Catalogue
    bounded: bool
    rebuilder: Rebuilder = field(init=False)
    _amount: RelationColumn | None = None

    def __post_init__(self) -> None:
        self.rebuilder = Rebuilder(self.file, self.catalogue)

    def query(self, node: Any, options: dict[str, str]) -> RankedQuery:
        if isinstance(node, exp.SetOperation):
            word = type(node).__name__.upper()
            raise QueryRefused("setop-final", f"{word} of counted lists: ask for each by itself")
        if not isinstance(node, exp.Select):
            raise QueryRefused("statement", f"{quoted(node)} is not a SELECT; write one")
        layers = Layers(self.rebuilder, node)
        counting, ctes = layers.counting
        extra = [k for k, v in counting.args.items() if v and k not in COUNTING_PARTS]
        if counting.args.get("offset") is not None:
            raise QueryRefused("offset", "OFFSET skips items that were paid for; leave it out")
        if extra:
            name = extra[0].strip("_").upper()
            raise QueryRefused("clause", f"{name} is not supported; leave it out")
        opened = self.rebuilder.open(counting, ctes)
        if opened.scope.own is None:
            raise QueryRefused("public", "every table of the query is public; ask the database")
        return self._counted(counting, opened, layers, options)

    def _counted(
        self, node: exp.Select, opened: Opened, layers: Layers, options: dict[str, str]
    ) -> RankedQuery:
        scope = opened.scope
        listed = CallerList(node, scope)
        keys = listed.keys()
        if not keys:
            found = measures_in(node)
            raise QueryRefused(
                "total" if found else "rows",
                f"{quoted(found[0] if found else node)} without GROUP BY is no list of items; add "
                "GROUP BY and the column to rank",
            )
        items, titles = self._items(listed, keys)
        measure = self._measure(node, listed, scope)
        layers.check_shown({listed.canonical(item) for item in items}, listed)
        ranking = self._ranking(node, listed, layers, measure)
        if measure.kind == "rows" and _one_row_each(scope, items):
            measure = replace(measure, kind="persons")
        bound = bound_of(measure, options, self.file, self.bounded)
        columns, select = self._select(opened, items, measure)
        if scope.dialect == "sqlite":
            select = flattened(select)
        by, groups = self._groups(ranking.partition, items, opened, listed)
        domain = None if by is not None else self._domain(opened, columns, items)
        if ranking.smallest and domain is None:
            raise QueryRefused(
                "smallest",
                "ORDER BY … ASC names the rarest items: join a public table and group by its "
                "column",
            )
        least = layers.at_least() or at_least(node.args.get("having"), measure, listed)
        if measure.kind != "persons" and least is not None:
            raise QueryRefused(
                "having",
                f"HAVING cuts by a noisy number of people; leave it out beside {measure.written}",
            )
        k: Any = ranking.k if ranking.k is not None else ("all" if least else "auto")
        shown = layers.shows_measure() or (least is not None and isinstance(k, int))
        asked = RankedQuery(
            rows=select,
            items=columns,
            titles=titles,
            k=k,
            counts=shown and measure.kind == "persons",
            measure=measure.kind,
            amount=self._amount,
            amount_title=measure.title if self._amount is not None else "",
            bound=bound,
            at_least=least,
            smallest=ranking.smallest,
            by=by,
            groups=groups,
            domain=domain,
            shared_rows=self.rebuilder.shared_rows,
            dialect=scope.dialect,
            owner_kind=self.rebuilder.owner_kind,
            tables=self.rebuilder.tables_read,
        )
        return self._with_options(asked, options, scope)

    def _items(self, listed: CallerList, keys: list[Any]) -> tuple[list[Any], tuple[str, ...]]:
        shown = [
            (name, one)
            for name, one in listed.shown
            if not measures_in(one) and not isinstance(one.unnest(), exp.Window)
        ]
        wanted = {listed.canonical(key) for key in keys}
        given = {listed.canonical(one) for _, one in shown}
        if wanted != given or len(shown) > len(wanted):
            why = "the items of the list must be exactly the columns of GROUP BY, each once"
            raise QueryRefused("group", why)
        for _, one in shown:
            if names_person(one, listed.scope):
                raise QueryRefused(
                    "person-item",
                    f"{quoted(one)} names a person: the list itself would give them away; group by "
                    "another column",
                )
        titles = tuple(name or f"item {place}" for place, (name, _) in enumerate(shown, start=1))
        return [one for _, one in shown], titles

    def _measure(self, node: exp.Select, listed: CallerList, scope: Scope) -> Measure:
        found: dict[str, Measure] = {}
        read = [("", one) for _, one in listed.shown]
        for clause, name in (("HAVING", "having"), ("QUALIFY", "qualify"), ("ORDER BY", "order")):
            read += [(f"{clause}: ", node.args[name])] if node.args.get(name) is not None else []
        for clause, part in read:
            for one in measures_in(part):
                try:
                    found[listed.canonical(one)] = measure_of(one, scope, listed)
                except QueryRefused as refused:
                    raise QueryRefused(refused.reason, f"{clause}{refused}") from None
        order = node.args.get("order")
        keys = [] if order is None else [one.this for one in order.expressions]
        for part in [*(one for _, one in listed.shown), *keys]:
            plain = part.unnest()
            if measures_in(plain) and not isinstance(plain, exp.Window | exp.AggFunc | exp.Filter):
                raise QueryRefused(
                    "measure",
                    f"{quoted(part)} is not the count itself; show that, and compute with the "
                    "answer",
                )
        if not found:
            raise QueryRefused("rows", "the query counts nothing: add COUNT(DISTINCT person)")
        first, *others = {measure.text: measure for measure in found.values()}.values()
        if others:
            raise QueryRefused(
                "two-measures",
                f"{first.written} and {others[0].written} are two measures; rank by one, and ask "
                "for the other apart",
            )
        return first

    def _ranking(
        self, node: exp.Select, listed: CallerList, layers: Layers, measure: Measure
    ) -> Ordering:
        inner = ordering(node, listed, measure)
        ranking = layers.ordering(inner, measure, listed)
        if ranking.k is not None and not ranking.ordered:
            raise QueryRefused("order", "LIMIT without ORDER BY the measure takes any; add it")
        return ranking

    def _select(
        self, opened: Opened, items: list[Any], measure: Measure
    ) -> tuple[tuple[RelationColumn, ...], exp.Select]:
        scope = opened.scope
        expressions = Expressions(scope)
        columns: list[RelationColumn] = []
        shown: list[Any] = []
        for place, item in enumerate(items, start=1):
            typed = expressions.typed(item)
            if typed.value is not None or typed.sort == "null":
                raise QueryRefused("group", f"{quoted(item)} is a constant; group by a column")
            if typed.sort not in KEYS:
                raise QueryRefused("group", f"{quoted(item)} must be cast to TEXT to be an item")
            ident = f"i{place}"
            plain = item.unnest()
            found = scope.find(plain) if isinstance(plain, exp.Column) else None
            origin = None
            if found is not None and not found.source.optional:
                origin = found.column.origin
            columns.append(RelationColumn("", ident, typed.sort, origin=origin))
            shown.append(named(typed.node, ident))
        if measure.kind == "sum":
            typed = amount_of(measure.amount, expressions, scope.dialect)
            if typed.sort not in {"integer", "decimal", "float"}:
                raise QueryRefused("measure", f"{measure.written} must add a column of numbers")
            self._amount = RelationColumn("", "amount", typed.sort)
            shown.append(named(typed.node, "amount"))
        assert scope.own is not None
        select = opened.select.select(*shown, named(scope.own.copy(), OWN), copy=False)
        for condition in measure.conditions:
            select = select.where(expressions.truth(condition), copy=False)
        return tuple(columns), select

    def _domain(
        self, opened: Opened, columns: tuple[RelationColumn, ...], items: list[Any]
    ) -> exp.Select | None:
        """The items in the public table that they come from; of private rows they are theirs."""
        scope = opened.scope
        if any(column.origin is None for column in columns):
            return None
        found = [scope.find(item.unnest()) for item in items]
        sources = {id(f.source): f.source for f in found if f is not None}
        source = next(iter(sources.values()), None)
        if source is None or len(sources) != 1 or source.relation.private:
            return None
        alone = Scope(scope.dialect)
        alone.sources.append(source)
        expressions = Expressions(alone)
        shown = [
            named(expressions.typed(item).node, column.ident)
            for item, column in zip(items, columns, strict=True)
        ]
        rows: Any = source.relation.select.copy()  # the list's own are in another place
        table = derived(rows, source.alias)
        select = exp.select(*shown).distinct(copy=False).from_(table, copy=False)
        for part in opened.where:
            reads = list(columns_read(part, scope))
            plain = not any(True for _ in part.find_all(exp.Query, exp.Exists))
            if plain and reads and all(f is not None and f.source is source for f in reads):
                select = select.where(expressions.truth(part), copy=False)
        return select

    def _groups(
        self, partition: Any, items: list[Any], opened: Opened, listed: CallerList
    ) -> tuple[int | None, tuple[Any, ...]]:
        if partition is None:
            return None, ()
        texts = [listed.canonical(item) for item in items]
        wanted = listed.canonical(partition)
        if wanted not in texts or len(texts) < 2:
            raise QueryRefused("window", f"add {quoted(partition)} of PARTITION BY to the list")
        place = texts.index(wanted)
        for part in opened.where:
            if isinstance(part, exp.In) and listed.canonical(part.this) == wanted:
                values = [_value(one) for one in part.expressions]
                if values and None not in values:
                    return place, tuple(values)
            if isinstance(part, exp.EQ) and listed.canonical(part.this) == wanted:
                value = _value(part.expression)
                if value is not None:
                    return place, (value,)
        found = opened.scope.find(partition.unnest())
        listed_values = self._file_values(found) if found is not None else ()
        if not listed_values:
            raise QueryRefused(
                "groups",
                f"the groups of {quoted(partition)} would be found in the data; name them: WHERE "
                f"{quoted(partition)} IN (…)",
            )
        return place, listed_values

    def _file_values(self, found: Any) -> tuple[Any, ...]:
        rule = self.file.tables.get(found.source.table)
        held = {} if rule is None else {folded(name): held for name, held in rule.values.items()}
        return tuple(held.get(folded(found.column.name), ()))

    def _with_options(
        self, asked: RankedQuery, options: dict[str, str], scope: Scope
    ) -> RankedQuery:
        unit = options.get("privacy_unit_column")
        if unit is not None and tag_of(exp.column(unit), scope) != PERSON:
            raise QueryRefused(
                "unit", f"privacy_unit_column = {unit} is not the privacy file's person; omit it"
            )
        cap = options.get("max_groups_contributed")
        if cap is not None and (not _is_whole(cap) or int(cap) < 1):
            raise QueryRefused("options", "max_groups_contributed must be a whole number above 0")
        return replace(
            asked,
            max_items=None if cap is None else int(cap),
            epsilon=options.get("epsilon"),
            delta=options.get("delta"),
        )


def _is_whole(text: str) -> bool:
    return text.isdecimal() and len(text) <= MOST_DIGITS


def _value(node: Any) -> Any:
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else int(node.this) if _is_whole(node.this) else None
    return bool(node.this) if isinstance(node, exp.Boolean) else None


def _one_row_each(scope: Scope, items: list[Any]) -> bool:
    """Whether COUNT(*) counts people: no person has two rows with one item."""
    unique = scope.sources[0].relation.unique
    found = [scope.find(i.unnest()) for i in items if isinstance(i.unnest(), exp.Column)]
    plain = {f.column.ident for f in found if f is not None}
    return len(scope.sources) == 1 and unique is not None and unique <= plain
