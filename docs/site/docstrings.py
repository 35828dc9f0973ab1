"""Docstrings as Markdown: doctests become code blocks, roles become code, lists become lists."""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
from html import escape
from pathlib import Path
from typing import Any

import griffe

_FOUND = importlib.util.spec_from_file_location("pages", Path(__file__).with_name("pages.py"))
assert _FOUND is not None
assert _FOUND.loader is not None
pages = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(pages)

SIGN = "&#124;"
"""A pipe that ends no cell of a table."""
PRIVATE = re.compile(r"(?<![\w.'\"])_[A-Za-z]\w*")
CONSTANT = re.compile(r"_\w+|[A-Z][A-Z0-9_]+")
LITERAL = re.compile(r"[-\d.e_]+|'[^']*'|\"[^\"]*\"|\([-\d., e]*\)|Fraction\([\d, ]+\)")
LONG_VALUE = 30
PARAMETERS = re.compile(
    r"Parameters(?:: those of ``(?P<of>[\w.]+)``\.?"
    r"|(?:, beside those of ``(?P<beside>[\w.]+)``)?:)\s*"
)
SAID = re.compile(r"``(\w+)``: ")
"""How a docstring says what each parameter means."""
DRAWS = {"select", "release"}
"""What a mechanism can do."""
NOT_GIVEN = re.compile("Unpack|(Request|Reader|Asker|Changer|Saver|Person|(Some|Dataset)?Owner)$")
"""What docs/reference/package.md has a table of, and what the service gives to its own calls: the
request, and whose key or session it comes with."""
WITH_FIELDS = ("BaseModel", "Strict", "Shape", "NamedTuple")
ROUTE = re.compile(
    r"(?P<router>\w+)\.(?P<method>get|post|put|patch|delete)\((?P<api>API \+ )?'(?P<address>[^']*)'"
)


class Docstrings(griffe.Extension):
    """Rewrites every docstring that is shown."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for every module, class, function and attribute as soon as it is read."""
        if not obj.is_alias and obj.docstring:
            text, said = without_parameters(obj.docstring.value)
            obj.docstring.value = markdown(text)
            obj.extra["topsecret"] |= {"said": said}

    def on_module(self, *, mod: Any, **_: Any) -> None:
        """Called when all is read: what a module imports to offer it is shown where it is made."""
        if mod.exports is not None:
            known = mod.members
            own = [name for name in mod.exports if name in known and not known[name].is_alias]
            mod.exports = own

    def on_function(self, *, func: Any, **_: Any) -> None:
        """What a function takes, and at which address a service offers it."""
        resolve_defaults(func)
        if func.docstring:
            # The ledger has a Request of its own, which its callers give.
            given = func.path.startswith("topsecret.ledger.")
            found = rows(func.parameters, said_of(func))
            shown = [row for row in found if given or not NOT_GIVEN.match(str(row[1]))]
            text = func.docstring.value + (table_of(shown) if len(shown) > 1 else "")
            func.docstring.value = route(func) + text

    def on_class(self, *, cls: Any, **_: Any) -> None:
        """What makes an object of the class; a field that the table explains has no heading."""
        if not cls.docstring:
            return
        found = fields(cls)
        head = "parameter" if "__init__" in cls.members else "field"
        cls.docstring.value += table_of(found, head)
        for name, _kind, _default, words in found:
            field = cls.members.get(name)
            if words and field and field.docstring and "\n\n" not in field.docstring.value:
                field.extra["topsecret"]["words"] = field.docstring.value  # for classes below
                field.docstring = None

    def on_attribute(self, *, attr: Any, **_: Any) -> None:
        """No value that is a name of the inside, and no word of the parser's own."""
        made_inside = attr.parent.is_class and "class-attribute" not in attr.labels
        init = attr.parent.members.get("__init__") if made_inside else None
        if init and not attr.annotation and str(attr.value) in init.parameters:
            attr.annotation = init.parameters[str(attr.value)].annotation
        if made_inside or PRIVATE.search(str(attr.value)):
            attr.value = None
        attr.labels -= {"class-attribute", "instance-attribute", "module-attribute"}


Row = tuple[str, Any, Any, str]
"""A parameter: its name, type, default, and what it means."""


def resolve_defaults(func: Any) -> None:
    """The value of a default that is a constant, of this module or of another."""
    for one in func.parameters:
        if CONSTANT.fullmatch(str(one.default)):
            one.default = constant(func.module, str(one.default)) or one.default


def constant(module: Any, name: str) -> Any:
    """The value of a constant, unless it takes more than a line or is made of other names."""
    try:
        found = module[name]
        found = found.final_target if found.is_alias else found
        value = found.value
        inside = PRIVATE.fullmatch(name)  # nobody could look it up
        short = inside or (len(str(value)) <= LONG_VALUE and LITERAL.fullmatch(str(value)))
    except (KeyError, AttributeError, griffe.AliasResolutionError, griffe.CyclicAliasError):
        return None
    return value if short else None


def without_parameters(text: str) -> tuple[str, dict[str, str]]:
    """A docstring apart from its paragraph about parameters, and what that says of each.

    >>> without_parameters("Ask.\\n\\nParameters: ``k``: how many;\\n``by``: a column.\\n\\nEnd.")
    ('Ask.\\n\\nEnd.', {'k': 'How many.', 'by': 'A column.'})
    >>> without_parameters("Plan.\\n\\nParameters, beside those of ``top_k``: ``by``: a column.")
    ('Plan.', {'': 'top_k', 'by': 'A column.'})
    >>> without_parameters("Plan.\\n\\nParameters: those of ``top_k``.")
    ('Plan.', {'': 'top_k'})
    """
    kept, said = [], {}
    for paragraph in text.split("\n\n"):
        line = " ".join(paragraph.split())
        head = PARAMETERS.match(line)
        if not head:
            kept.append(paragraph)
            continue
        if head["beside"] or head["of"]:
            said[""] = head["beside"] or head["of"]
        _, *parts = SAID.split(line[head.end() :])
        for name, words in zip(parts[::2], parts[1::2], strict=True):
            sentence = words.strip().rstrip(";.")
            said[name] = f"{sentence[0].upper()}{sentence[1:]}."
    return "\n\n".join(kept), said


def said_of(obj: Any) -> dict[str, str]:
    """What a docstring says of parameters, with what those that it refers to say.

    What a class says is so for all of its methods, and what ``Mechanism`` says for all of them.
    """
    said = dict(obj.extra["topsecret"].get("said", {}))
    other = said.pop("", None)
    if other:
        place = obj.parent if other in obj.parent.members else obj.module
        said = said_of(place[other]) | said
    if obj.is_function and obj.parent.is_class:
        said = said_of(obj.parent) | said
    if (
        obj.is_class
        and obj.name != "Mechanism"
        and ".mechanisms." in obj.path
        and DRAWS & obj.members.keys()
    ):
        said = said_of(obj.package["mechanisms.mechanism.Mechanism"]) | said
    return {name: markdown(words) for name, words in said.items()}


def rows(parameters: Any, said: dict[str, str]) -> list[Row]:
    """What a caller gives."""
    return [
        (
            one.name,
            one.annotation,
            one.default,
            one.docstring.value if one.docstring else said.get(one.name.lstrip("*"), ""),
        )
        for one in parameters
        if one.name not in ("self", "cls") and not one.name.startswith("_")
    ]


def fields(cls: Any) -> list[Row]:
    """What a class takes: the parameters of its ``__init__``, which griffe knows for dataclasses.

    The shapes of the service, and tuples with names, have fields in its place.
    """
    if "__init__" in cls.members:
        made = cls.members["__init__"]
        resolve_defaults(made)
        return rows(made.parameters, said_of(made) | said_of(cls))
    if not any(str(base).endswith(WITH_FIELDS) for base in cls.bases):
        return []
    found = {}
    for one in [*reversed(cls.mro()), cls]:
        for name, field in one.members.items():
            if field.is_attribute and field.annotation and not name.startswith("_"):
                before = field.extra["topsecret"].get("words", "")
                words = field.docstring.value if field.docstring else before
                found[name] = (name, field.annotation, *of_field(field.value, words))
    return list(found.values())


def of_field(value: Any, words: str) -> tuple[Any, str]:
    """The default of a field, and what it means where ``Field`` says so.

    >>> of_field("Field(default=None, ge=1, description='How many.')", "")
    ('None', 'How many.')
    >>> of_field("'is'", "")
    ("'is'", '')
    """
    if not str(value).startswith("Field("):
        return value, words
    given = {
        word.arg: word.value
        for word in ast.parse(str(value), mode="eval").body.keywords  # type: ignore[attr-defined]
    }
    default = ast.unparse(given["default"]) if "default" in given else None
    said = [given["description"].value] if "description" in given else []
    return default, " ".join([words, *said]).strip()


def table_of(found: list[Row], name: str = "parameter") -> str:
    """Parameters as a table."""
    if not found:
        return ""
    told = [(one, *unwrapped(kind, words), default) for one, kind, default, words in found]
    lines = [
        f"| `{one}` | {in_cell(words)} | {cell(kind)} | {cell(default) or 'required'} |"
        for one, kind, words, default in told
    ]
    head = f"| {name} | meaning | type | default |\n| --- | --- | --- | --- |"
    if not any(words for _, _, words, _ in told):
        lines = [line.replace(" |  |", " |", 1) for line in lines]
        head = f"| {name} | type | default |\n| --- | --- | --- |"
    return "\n\n" + "\n".join([head, *lines]) + "\n"


def in_cell(words: str) -> str:
    """The first paragraph in one line; a pipe ends a cell unless it is part of code.

    >>> in_cell("P[a | b] of `x | y`.\\n\\nMore.")
    'P[a &#124; b] of `x | y`.'
    """
    line = " ".join(words.split("\n\n")[0].split())
    return re.sub(r"`[^`]*`|\|", lambda one: SIGN if one[0] == "|" else one[0], line)


def route(func: Any) -> str:
    """The method and the address at which the service offers a function, if it does."""
    for decorator in func.decorators:
        found = ROUTE.match(str(decorator.value))
        if found and found["router"].endswith("api"):
            router = func.module.members[found["router"]]
            start = func.package["service.middleware.API"].value
            inside = found["api"] or "prefix=API" in str(router.value)
            address = (ast.literal_eval(str(start)) if inside else "") + found["address"]
            return f"`{found['method'].upper()} {address}`\n\n"
    return ""


def cell(code: Any) -> str:
    """An expression as code that may stand in a table.

    >>> cell("int | None")
    '<code>int &#124; None</code>'
    """
    return "" if code is None else f"<code>{escape(str(code)).replace('|', SIGN)}</code>"


def table(found: re.Match[str]) -> str:
    """A table that rules of equals signs frame, as one of pipes."""
    ends = [rule.end() for rule in re.finditer("=+", found[1])]
    rows = [
        [part.strip().replace("|", SIGN) for part in (line[: ends[0]], line[ends[0] :])]
        for line in found[0].splitlines()
        if not line.startswith("=")
    ]
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "| --- | --- |", *others]) + "\n"


class _Plain(ast.NodeTransformer):
    """Types without what is said beside them, which is kept apart."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """``Annotated[int, Option(help=...)]`` as ``int``."""
        self.generic_visit(node)
        if ast.unparse(node.value) != "Annotated" or not isinstance(node.slice, ast.Tuple):
            return node
        self.said += [
            word.value.value
            for word in ast.walk(node.slice)
            if isinstance(word, ast.keyword) and word.arg == "help"
            if isinstance(word.value, ast.Constant)
        ]
        return node.slice.elts[0]


def unwrapped(kind: Any, words: str) -> tuple[Any, str]:
    """A type, and what it means where an option of the command line says so beside it.

    >>> unwrapped("Annotated[int, typer.Option(help='How many.')]", "")
    ('int', 'How many.')
    >>> unwrapped("list[Annotated[str, Field(max_length=200)]]", "Names.")
    ('list[str]', 'Names.')
    """
    if "Annotated[" not in str(kind):
        return kind, words
    plain = _Plain()
    shown = ast.unparse(plain.visit(ast.parse(str(kind), mode="eval")))
    return shown, " ".join([words, *plain.said]).strip()


def literal(found: re.Match[str]) -> str:
    """An indented block after a pair of colons, as a code block; a drawn tree as a list."""
    text = textwrap.dedent(found[1])
    return tree(text) if "├──" in text else f"```text\n{text}```\n\n"


def tree(text: str) -> str:
    """A tree of exceptions as nested lists, which a phone can wrap without losing their shape.

    >>> print(tree("Root\\n├── One (ValueError)  is wrong\\n│   └── Two    is more so\\n"))
    - [`Root`][topsecret.errors.Root]
        - [`One`][topsecret.errors.One] (`ValueError`): is wrong
            - [`Two`][topsecret.errors.Two]: is more so
    <BLANKLINE>
    <BLANKLINE>
    """
    lines = []
    for line in text.rstrip().splitlines():
        found = re.fullmatch(r"([│├└─ ]*)(\w+)(?: \((\w+)\))?(?: +(.*))?", line)
        assert found, line
        base = f" (`{found[3]}`)" if found[3] else ""
        said = f": {found[4]}" if found[4] else ""
        link = f"[`{found[2]}`][topsecret.errors.{found[2]}]"
        lines.append(f"{found[1] and ' ' * len(found[1])}- {link}{base}{said}")
    return "\n".join(lines) + "\n\n"


def markdown(text: str) -> str:
    """The same docstring, as Markdown.

    >>> markdown(">>> 1 + 1\\n2\\n")
    '```pycon\\n>>> 1 + 1\\n2\\n```\\n'
    >>> markdown("See :class:`~a.B` and ``c``.")
    'See `B` and `c`.'
    >>> markdown(">>> f(2)  # doctest: +ELLIPSIS\\n2")
    '```pycon\\n>>> f(2)\\n2\\n```\\n'
    """
    text = re.sub(r" *# doctest:.*", "", text)
    text = re.sub(r":\w+:`~?([\w.]+)`", lambda found: f"`{found[1].split('.')[-1]}`", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"^(=+ +=+)\n(?:.+\n)+?\1\n(?:.+\n)+?\1$\n?", table, text, flags=re.MULTILINE)
    text = re.sub(r"^::\n\n((?:(?: {4}.*)?\n)+)", literal, text, flags=re.MULTILINE)
    text = re.sub(
        r"^>>> (?:.+\n?)+", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text, flags=re.M
    )
    text = pages.coded(pages.with_links(text, "../../", ".html"))
    spaced: str = pages.spaced(pages.typeset(text))
    return spaced
