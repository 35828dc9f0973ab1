"""Random tables, settings, views and questions on every engine, with and without one person.

``Hunt(world, seed).run(number)`` makes pairs of neighbouring tables and asks both the same. It
checks that counts move by at most 1, of at most ``max_items`` items and in one disjoint group; that
no value, view or setting makes a question fail; and that the counts are those of a slow count in
Python. Questions that are refused are ``refuses_alike``'s: in the same words for both.
A *world* is an engine with hostile values and settings; ``tests/sources/fuzz_soak.py`` runs each
for long.
"""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from topsecret.errors import TopSecretError
from topsecret.sources import Column, CountQuery, Expression, GroupAssignment, Source
from topsecret.sources import session as asking
from topsecret.sources.domains.counted_domain import counted_domains
from topsecret.sources.domains.domain import domain_of
from topsecret.sources.engines import duckdb as duckdb_engine
from topsecret.sources.engines import duckdb_session, sql_session
from topsecret.sources.session import Session, leading_counts_of

Row = tuple[Any, Any, Any, Any]
"""(user, place, g, n)."""

TEXTS = [
    *("a", "A", "ä", "z", "ß", "😀", "é", "e\u0301", " a", "a ", "\x01a", "\x01text:a", "1", "01"),
    *(
        "1.0",
        "1e0",
        "x'y",
        'x"y',
        "x\\'y",
        "\\",
        "%s",
        ":x",
        "${y}",
        "--",
        "true",
        "NULL",
        "\u2003",
    ),
    *("line\nbreak", "a,b", "-1", "100000000000000000000e-20", "€"),
]
QUOTES = ["x'y", 'x"y', "x\\'y", "\\", "%s", ":x", "${y}", "--"]
"""Of these, what a literal may end too early at."""
NUMBERS = [0, 1, -1, 2, 3, 7, 2**31 - 1, 2**63 - 1, -(2**63)]
GROUPS = ("1", "2", "a", "é", "x'y")
TOGETHER = 6
"""Questions in one session."""
SALTS = [bytes([n]) * 16 for n in range(4)]


class World(Protocol):
    """An engine, or a kind of file or frame, with all that is hostile about it."""

    name: str
    texts: Sequence[str]
    """Values that it can hold."""
    missing: bool
    """Whether it tells no value from an empty text, or has both."""

    def load(self, rows: Sequence[Row]) -> Callable[[random.Random], Source]:
        """The table of these rows, in the place of the last one.

        What is called gives the source, with views and settings by chance.
        """
        ...


@dataclass(frozen=True)
class Asked:
    """A question to both neighbours."""

    item: str
    cap: int | None
    where: tuple[tuple[str, str, Any], ...]
    groups: tuple[Any, ...]
    domain: tuple[Any, ...]
    salt: bytes


def question(world: World, chance: random.Random) -> Asked:
    items = ["place", "place", "n", "SUBSTRING(place, 1, 1)", "LENGTH(place)"]
    items.append("CASE WHEN n > 2 THEN 'big' ELSE 'small' END")
    item = chance.choice(items)
    known = chance.choice([world.texts, QUOTES])
    some = [chance.choice(known) for _ in range(3)]
    where: list[tuple[str, str, Any]] = []
    if chance.random() < 0.5:
        operator = chance.choice(["=", "!=", "<", ">=", "in", "not in"])
        where.append(("place", operator, some if " " in operator or operator == "in" else some[0]))
    if chance.random() < 0.3:
        where.append(("n", chance.choice(["<", ">="]), chance.choice(NUMBERS)))
    groups: tuple[Any, ...] = ()
    if chance.random() < 0.4:
        groups = tuple(dict.fromkeys(chance.choices(GROUPS, k=3)))
    domain: tuple[Any, ...] = ()
    if item in {"place", "n"} and chance.random() < 0.3:
        domain = tuple(dict.fromkeys(some if item == "place" else chance.sample(NUMBERS, 3)))
    return Asked(
        item, chance.choice([None, 1, 2]), tuple(where), groups, domain, chance.choice(SALTS)
    )


@dataclass
class Open:
    """A session that stays open from one question to the next."""

    held: Session
    name: str = "events"

    @contextmanager
    def session(self, _: CountQuery) -> Iterator[Session]:
        yield self.held


@contextmanager
def remembered() -> Iterator[None]:
    """Statements are written once for each dialect, relation, schema and question.

    Nothing else goes into one. To write it takes longer than to count twenty rows.
    """
    kept: dict[Any, Any] = {}
    texts: dict[int, str] = {}
    patched = [(asking, name) for name in ("ranking", "counts_by_group", "statement")]
    patched += [(one, "rendered") for one in (duckdb_engine, duckdb_session, sql_session)]
    before = [(module, name, getattr(module, name)) for module, name in patched]
    (_, _, ranking), (_, _, by_group), (_, _, statement), *_, (_, _, rendered) = before

    def known(build: Callable[[], Any], *parts: Any) -> Any:
        key = tuple(repr((part, getattr(part, "__dict__", 0))) for part in parts)
        if key not in kept:
            kept[key] = build()
            texts[id(kept[key])] = ""
        return kept[key]

    def written(function: Any, *found: Any, **options: Any) -> Any:
        events, query, *others = found
        named = {name: getattr(value, "__qualname__", value) for name, value in options.items()}
        build = partial(function, *found, **options)
        return known(build, function.__name__, events.sql(), query, query.salt, *others, named)

    def asked(session: Session, query: CountQuery) -> Any:
        events, schema = session.events(query.columns)
        build = partial(statement, session, query)
        return known(build, session.dialect, events.sql(), query, query.salt, schema)

    def text(expression: Any, dialect: str) -> str:
        if id(expression) not in texts:
            return str(rendered(expression, dialect))
        texts[id(expression)] = texts[id(expression)] or rendered(expression, dialect)
        return texts[id(expression)]

    ours = [partial(written, ranking), partial(written, by_group), asked, text, text, text]
    try:
        for (module, name, _), other in zip(before, ours, strict=True):
            setattr(module, name, other)
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def queries_of(asked: Asked) -> list[CountQuery]:
    """One query, or one for each group."""
    item = asked.item if asked.item in {"place", "n"} else Expression(asked.item)
    domain = domain_of(list(asked.domain)) if asked.domain else None
    query = CountQuery(item, "user", 500, asked.where, asked.cap, domain, salt=asked.salt)
    if not asked.groups:
        return [query]
    homes = [GroupAssignment("g", asked.groups, group) for group in asked.groups]
    return [replace(query, home=home) for home in homes]


def answers(source: Source | Open, asked: Asked) -> list[dict[Any, int]]:
    """What the source counts: one histogram, or one for each group."""
    queries = queries_of(asked)
    if not asked.domain:
        return [dict(rows) for rows in leading_counts_of(source, queries)]  # type: ignore[arg-type]
    with counted_domains(source, queries) as domains:  # type: ignore[arg-type]
        found = []
        for one in domains:
            assert sum(number for _, number in one.counts()) == len(asked.domain)
            found.append(dict(one.leading(500)))
        return found


def by_hand(rows: Sequence[Row], asked: Asked) -> list[dict[Any, int]]:
    """The same counts in plain Python."""
    items: dict[Any, dict[Any, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for user, place, group, n in rows:
        item = _item(asked.item, place, n)
        inside = not asked.domain or item in asked.domain
        home = group if asked.groups else ""
        kept = user is not None and item is not None and inside
        if kept and _holds(asked.where, place, n) and (not asked.groups or home in asked.groups):
            items[user][home].add(item)
    counts: dict[Any, Counter[Any]] = {group: Counter() for group in asked.groups or ("",)}
    for user, mine in items.items():
        home = min(mine, key=partial(_place, asked, user))
        chosen = sorted(mine[home], key=lambda one: (_hash(asked.salt, "", user, one), one))
        counts[home].update(chosen if asked.cap is None else chosen[: asked.cap])
    return [dict(counts[group]) for group in asked.groups or ("",)]


def _place(asked: Asked, user: Any, group: str) -> int:
    """Where a group stands for a person: they stay in the first of theirs."""
    if not asked.groups:
        return 0
    taken: dict[int, str] = {}
    for one in asked.groups:
        drawn = hashlib.md5(f"{asked.salt.hex()}:group:{one}".encode()).hexdigest()
        number = int(drawn[:4], 16) + 1
        while number in taken:
            number = number % 65536 + 1
        taken[number] = one
    digits = _hash(asked.salt, ":home:", user)
    factor, shift = int(digits[:4], 16) + 1, int(digits[4:8], 16) + 0x1111
    return next((factor * x + shift) % 65537 for x, one in taken.items() if one == group)


def _hash(salt: bytes, purpose: str, *parts: Any) -> str:
    message = salt.hex() + purpose + "".join(f"{len(str(part))}:{part}" for part in parts)
    return hashlib.md5(message.encode()).hexdigest()


def _item(text: str, place: Any, n: Any) -> Any:
    if text == "n":
        return n
    if text.startswith("CASE"):
        return "big" if n is not None and n > 2 else "small"
    if place is None or text == "place":
        return place
    return place[:1] if text.startswith("SUBSTRING") else len(place)


def _holds(where: Any, place: Any, n: Any) -> bool:
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "=": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        ">=": lambda a, b: a >= b,
        "in": lambda a, b: a in b,
        "not in": lambda a, b: a not in b,
    }
    values = {"place": place, "n": n}
    return all(
        values[name] is not None and tests[operator](values[name], value)
        for name, operator, value in where
    )


class Violation(AssertionError):
    """Neighbours that are too far apart, or counts that are wrong."""


@dataclass
class Hunt:
    """Pairs of neighbours in one world, from one seed."""

    world: World
    seed: int
    slow_count: bool = True

    def run(self, pairs: int, questions: int = 12) -> int:
        """Check so many pairs, or a few more; how many were checked.

        A table is compared with what it is without each of its persons in turn.
        """
        done = 0
        while done < pairs:
            chance = random.Random(f"{self.world.name} {self.seed} {done}")
            rows = self._rows(chance)
            state = chance.getrandbits(64)
            asked = [question(self.world, chance) for _ in range(questions)]
            people = dict.fromkeys(row[0] for row in rows if row[0] is not None)
            with remembered():
                whole = self._found(rows, asked, state, done)
                for who in people:
                    fewer = [row for row in rows if row[0] != who]
                    without = self._found(fewer, asked, state, done)
                    for one, after, before in zip(asked, whole, without, strict=True):
                        self._compare(after, before, one, done)
                        done += 1
        return done

    def _found(self, rows: list[Row], asked: list[Asked], state: int, number: int) -> list[Any]:
        """The answers to all questions about these rows, each right."""
        source = self.world.load(rows)
        found: list[Any] = [None] * len(asked)
        # Each session has other settings. Only where there is a domain a table is kept.
        for kept in (False, True):
            mine = [place for place, one in enumerate(asked) if bool(one.domain) == kept]
            for start in range(0, len(mine), TOGETHER):
                some = mine[start : start + TOGETHER]
                opened = partial(_with, source, f"{state} {kept} {start}")
                answered = self._in_session(opened, [asked[place] for place in some], number)
                for place, answer in zip(some, answered, strict=True):
                    found[place] = answer
        for one, answer in zip(asked, found, strict=True):
            self._count(answer, rows, one, number)
        return found

    def _in_session(self, opened: Callable[[], Any], asked: list[Asked], number: int) -> list[Any]:
        """The first answer as a caller gets it, the others from one session."""
        found = [self._asked(opened(), asked[0], number)]
        if asked[1:]:
            with opened().session(queries_of(asked[1])[0]) as session:
                found += [self._asked(Open(session), one, number) for one in asked[1:]]
        return found

    def _rows(self, chance: random.Random) -> list[Row]:
        people = chance.sample(self.world.texts, chance.choice([4, 8, 16]))
        empty = [None] if self.world.missing else []
        return [
            (
                chance.choice([*people, *empty] if number else people),
                chance.choice([*self.world.texts, *empty]),
                chance.choice([*GROUPS, *empty]),
                chance.choice([*NUMBERS, *empty]),
            )
            for number in range(chance.randint(1, 40))
        ]

    def _count(self, found: Any, rows: list[Row], asked: Asked, number: int) -> None:
        if self.slow_count and found != by_hand(rows, asked):
            where = self._where(asked, number)
            raise Violation(f"{where}: {found} is not {by_hand(rows, asked)} by hand")

    def _where(self, asked: Asked, number: int) -> str:
        return f"{self.world.name}, seed {self.seed}, pair {number}: {asked}"

    def _compare(self, after: Any, before: Any, asked: Asked, number: int) -> None:
        where = self._where(asked, number)
        moved = [
            {item: a.get(item, 0) - b.get(item, 0) for item in {*a, *b}}
            for a, b in zip(after, before, strict=True)
        ]
        changed = [{i: d for i, d in one.items() if d} for one in moved]
        if any(change != 1 for one in changed for change in one.values()):
            raise Violation(f"{where}: a count moved by more than one person: {changed}")
        if asked.cap is not None and sum(map(len, changed)) > asked.cap:
            raise Violation(f"{where}: more items moved than the cap: {changed}")
        if sum(map(bool, changed)) > 1:
            raise Violation(f"{where}: one person is in several groups: {changed}")

    def _asked(self, source: Source | Open, asked: Asked, number: int) -> Any:
        """The answer: no value, view or setting may make one of these questions fail."""
        try:
            return answers(source, asked)
        except TopSecretError as error:
            message = f"{self._where(asked, number)}: {type(error).__name__}: {error}"
        raise Violation(message)


def _with(source: Callable[[random.Random], Source], state: str) -> Source:
    return source(random.Random(state))


def refuses_alike(load: Callable[[Sequence[Row]], Source], ask: Callable[[Source], Any]) -> None:
    """Ask both neighbours something that must be refused: the same words, or a violation."""
    said = []
    rows: list[Row] = [("ann", "a", "1", 1), ("bob", "b", "2", 2), ("zoe", "zoo", "a", 3)]
    for some in (rows, rows[:2], rows[1:]):
        try:
            said.append(f"answered: {ask(load(some))!r}")
        except TopSecretError as error:
            said.append(f"{type(error).__name__}: {error}")
    if len(set(said)) > 1 or said[0].startswith("answered"):
        raise Violation(f"one person changes what is refused: {said}")


DOMAIN_OF_EVENTS = Column("t", "place")
