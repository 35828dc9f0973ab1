"""What MkDocs cannot say in its configuration: pages from elsewhere, and a nav of globs.

README, CONTRIBUTING and CHANGELOG stay where a visitor of the repository looks for them and are
pages of the site too, with their links turned round. A notebook is a page as well.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tempfile
from fnmatch import fnmatch
from functools import cache
from html import escape, unescape
from itertools import cycle
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
BY_NAME = {source: page for page, source in OUTSIDE.items()}
TABLE = re.compile(r"<table>.*?</table>", re.S)
NAMED = re.compile(r"^```.*?^```$|(?P<code>`*)\bdocs/(?P<name>[\w/-]+)\.md(?P=code)", re.M | re.S)
OF_THE_REFERENCE = {
    "ball": re.compile(r"\bballs?\b"),
    "law": re.compile(r"\blaws?\b"),
    "secret": re.compile(r"(?<=[.)] )Secret(?=\.)"),
    "public": re.compile(r"(?<=[.)] )Public(?=\.)"),
    "bounded-range": re.compile(r"\bbounded[- ]range\b"),
    "slack": re.compile(r"\bslack\b"),
}
"""Words of docstrings that the glossary explains, by its anchors."""
EQUATION = re.compile(r"<pre.*?</pre>|<code.*?</code>|(?<![\w.])([εδρk]\u0304?) = (?=[\d.])", re.S)
"""A letter and its value, outside of code: they stay on one line."""
UNLINKED = re.compile(r"<(?:a|code|pre|h[1-6]|details)\b")
UNLINKED_END = re.compile(r"</(?:a|code|pre|h[1-6]|details)>")
LONG_CELL = 50
"""A table with a longer cell, or of options, is stacked on a phone: each cell below the other.
Numbers stay beside each other, whatever their rows are called."""
WIDE_ROW = 44
"""What a phone has room for in three columns."""
SHORT_CELL = 14
"""A table of four columns or more is of numbers if two thirds of them, the first apart, have no
longer cell, and most of all cells have a digit."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside, and spell out the globs of the nav."""
    for page, source in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=turned(text)))
    for notebook in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        page = f"tutorials/{notebook.stem}.md"
        text = told(executed(json.loads(notebook.read_text(encoding="utf-8"))))
        text += f'\n<a href="{notebook.name}">This page as a notebook</a>\n'
        files.append(File.generated(config, page, content=text))
    there = sorted((file.src_uri for file in files.documentation_pages()), key=natural)
    config.nav = spelled_out(config.nav, there, mentioned(config.nav))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lists may follow a paragraph directly, as they may where the repository is browsed.

    A result is followed by the code that made it. A notebook is the page that it is here.
    """
    folder, _, name = page.file.src_uri.rpartition("/")
    module = experiments().get(name.removesuffix(".md")) if folder == "results" else None
    if module:
        link = f"../reference/experiments.md#experiments.{module}"
        markdown += f"\n\nThe code: [`experiments/{module}.py`]({link}).\n"
    for source, target in BY_NAME.items():  # of pages at the top: elsewhere nothing leads there
        markdown = markdown.replace(f"](../{source}", f"]({target}")
    if folder == "reference":  # first sentences of docstrings
        markdown = coded(with_links(markdown, "../", ".md"))
    return spaced(typeset(markdown.replace(".ipynb)", ".md)")))


def with_links(text: str, up: str, ending: str) -> str:
    """Files of docs/ that a docstring names, as links to the pages they are.

    >>> with_links("See docs/notation.md.", "../", ".md")
    'See [Notation](../notation.md).'
    """

    def link(found: re.Match[str]) -> str:
        name = found["name"]
        return f"[{title_of(name)}]({up}{name}{ending})" if name else found[0]

    return NAMED.sub(link, text)


@cache
def title_of(name: str) -> str:
    """What the nav calls a page, or the page itself does."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    called = re.search(rf'^ +- "?([^"\n]+)"?: {name}\.md$', nav, re.M)
    page = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    return called[1] if called else page.split("\n", 1)[0].removeprefix("# ")


def on_page_content(html: str, page: Any = None, **_: Any) -> str:
    """A short piece of code stays on one line; a long name breaks after a dot, slash or underscore.

    An option in two is hard to read. A picture opens whole: on a phone it is too small. A table of
    sentences is marked: on a phone its cells stand below each other.

    >>> on_page_content("<code>a/b</code>")
    '<code class="whole">a/b</code>'
    >>> on_page_content("<code>src/topsecret/results/receipt.py</code>")
    '<code>src/<wbr>topsecret/<wbr>results/<wbr>receipt.py</code>'
    >>> on_page_content("ε = 1 and <code>k = 2</code>").replace("\u00a0", "_")
    'ε_=_1 and <code>k = 2</code>'
    >>> on_page_content('<p><img alt="" src="a.svg" /></p>')
    '<p><a href="a.svg"><img alt="" src="a.svg" /></a></p>'
    """
    if page and page.file.src_uri.startswith("reference/"):
        html = explained(html, "../" * page.file.src_uri.count("/"))
    html = TABLE.sub(stacked, html)
    html = re.sub(r"<code>([^<\s]{1,24})</code>", r'<code class="whole">\1</code>', html)
    html = re.sub(r"<code>[^<]*</code>", options_whole, html)
    html = re.sub(r"(?<=\d) ± (?=[\d.])", "\u00a0±\u00a0", html)
    html = EQUATION.sub(lambda found: f"{found[1]}\u00a0=\u00a0" if found[1] else found[0], html)
    html = re.sub(r"(<td[^>]*>[\d.,]+) (?=[a-zA-Z]{1,3}</td>)", "\\1\u00a0", html)
    html = re.sub(
        r"(?<=<code>)[^<\s]{25,}(?=</code>)",
        lambda found: re.sub(r"([./_])(?=\w)(?!(?:py|md|csv)$)", r"\1<wbr>", found[0]),
        html,
    )
    return re.sub(r'(<p>)(<img [^>]*src="([^"]+)"[^>]*>)(?=</p>)', r'\1<a href="\3">\2</a>', html)


def options_whole(found: re.Match[str]) -> str:
    """Options inside a command, each in one piece: a browser would break them after a dash.

    >>> on_page_content("<code>topsecret top --item place -k 5</code>")
    '<code>topsecret top <span class="whole">--item</span> place <span class="whole">-k</span> \
5</code>'
    """
    return re.sub(r"(?<=[ >\n])--?[a-z][\w-]*", r'<span class="whole">\g<0></span>', found[0])


def explained(html: str, up: str) -> str:
    """Links to the glossary where a page of the reference first uses a word of its own.

    >>> explained("<p>A <code>ball</code> or ball. Secret.</p>", "")
    '<p>A <code>ball</code> or <a href="glossary.html#ball">ball</a>. \
<a href="glossary.html#secret">Secret</a>.</p>'
    """
    left = dict(OF_THE_REFERENCE)
    parts = re.split("(<[^>]+>)", html)  # texts, and the tags between them
    inside = 0
    for place, part in enumerate(parts):
        if place % 2:
            inside += (UNLINKED.match(part) is not None) - (UNLINKED_END.match(part) is not None)
            continue
        for anchor, word in list(left.items() if not inside else ()):
            link = rf'<a href="{up}glossary.html#{anchor}">\g<0></a>'
            parts[place], found = word.subn(link, parts[place], count=1)
            if found:
                del left[anchor]
    return "".join(parts)


def stacked(found: re.Match[str]) -> str:
    """A table of three columns or more with sentences: each cell has its heading as a label.

    >>> row = f"<tr>{('<td>' + 60 * 'x' + '</td>') * 2}</tr>"
    >>> made = on_page_content(f"<table><th></th><th>a</th><th>b</th>{row}</table>")
    >>> made.partition("<tr>")[2].replace("x", "")
    '<td></td><td data-label="a"></td></tr></table>'
    """
    table = found[0]
    cells, heads = (
        [unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall(f"<{tag}.*?</{tag}>", table)]
        for tag in ("td", "th")
    )
    options = heads[:2] == ["", ""] or heads[1:2] == ["meaning"]
    longest = [
        max(map(len, cells[column :: len(heads)]), default=0) for column in range(len(heads))
    ]
    short = [length <= SHORT_CELL for length in longest[1:]]
    digits = sum(any(map(str.isdigit, cell)) for cell in cells)
    numbers = len(heads) > 3 and 3 * sum(short) >= 2 * len(short) and 2 * digits > len(cells)
    wide = max(longest, default=0) > LONG_CELL or (len(heads) == 3 and sum(longest) > WIDE_ROW)
    numbers = numbers and not options
    if len(heads) < 3 or numbers or not (options or wide):
        kind = "all" if all(short) else "most"
        return table.replace("<table>", f'<table data-numbers="{kind}">', 1) if numbers else table
    labels = cycle(heads)
    marked = re.sub(
        "<td(?=[^>]*>(.*?)</td>)",
        lambda cell: f"<td{label(next(labels), cell[1])}",
        table,
        flags=re.S,
    )
    return marked.replace("<table>", "<table data-stacked>", 1)


def label(head: str, cell: str) -> str:
    """The attribute with a cell's heading, where it says something."""
    return f' data-label="{escape(head)}"' if head and cell and cell != "required" else ""


def experiments() -> dict[str, str]:
    """The module behind each page of results, read from the experiments' registry."""
    tree = ast.parse((ROOT / "experiments" / "registry.py").read_text(encoding="utf-8"))
    calls = [
        [getattr(argument, "value", None) for argument in node.args]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Experiment"
    ]
    return {page: module for _, module, page, *_ in calls} | {
        "tested-top-k": "tested",
        "k-bar": "k_bar",
    }


def tutorials() -> list[str]:
    """The notebooks' pages, as the page that introduces them names them."""
    text = (ROOT / "docs" / "tutorials.md").read_text(encoding="utf-8")
    return [f"{page}.md" for page in re.findall(r"\]\((tutorials/[\w-]+)\.ipynb\)", text)]


def turned(text: str) -> str:
    """Links of a page at the root, as links of a page in docs/."""
    text = re.sub(r"\]\(docs/", "](", text)
    text = re.sub(r"\[([^\]]*)\]\(LICENSE\)", r"\1", text)
    return re.sub(r"\]\(([A-Z]+\.md)", lambda found: f"]({BY_NAME[found[1]]}", text)


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of a run; the tests build the site without, for time."""
    if os.environ.get("TOPSECRET_SITE_OUTPUTS") == "false":
        return notebook
    import nbformat
    from nbclient import NotebookClient

    read = nbformat.reads(json.dumps(notebook), as_version=4)
    made = NotebookClient(read, kernel_name="python3", timeout=600, startup_timeout=600)
    with tempfile.TemporaryDirectory() as folder:
        made.resources = {"metadata": {"path": folder}}
        return dict(made.execute())


def told(notebook: dict[str, Any]) -> str:
    """A notebook as a page: its text, its code, and what the code printed.

    >>> told({"cells": [{"cell_type": "code", "source": "print(1)",
    ...     "outputs": [{"output_type": "stream", "text": "1"}]}]})
    '```python\\nprint(1)\\n```\\n\\n```text title="Output"\\n1\\n```\\n'
    """
    shown = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            shown.append(text)
            continue
        shown.append(f"```python\n{text}\n```")
        printed = "".join(output_text(output) for output in cell.get("outputs", []))
        if printed.strip():
            shown.append(f'```text title="Output"\n{printed.rstrip()}\n```')
    return "\n\n".join(shown) + "\n"


def output_text(output: dict[str, Any]) -> str:
    """What an output says in plain text; nothing of the error stream."""
    if output["output_type"] == "stream":
        return "" if output.get("name") == "stderr" else "".join(output["text"])
    plain = output.get("data", {}).get("text/plain", "")
    return "".join(plain) + "\n" if plain else ""


def spaced(text: str) -> str:
    """A blank line before every list, which Python-Markdown needs to see it."""
    lines: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        before = lines[-1] if lines else ""
        starts = re.match(r"([-*]|1\.) \S", line) and before.strip()
        if starts and not fenced and not re.match(r"\s*([-*]|\d+\.) |  ", before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


CODE = re.compile(
    r"^```.*?^```$|^ {4}[^\n]*$|`[^`\n]+`|\]\([^)]*\)|<[^>\n]+>|^::: [^\n]*$", re.M | re.S
)
NAME = r"\b(?P<name>[A-Za-z]{2,}(?:_[A-Za-z]{2,})+)\b"
WRITTEN = re.compile(f"{CODE.pattern}|{NAME}", re.M | re.S)
RAISED = re.compile(r"(?<=[^\s^])\^(\(|[-−]?\.?\w+(?:\.\d+)?|\|\w\|)")
LOWERED = re.compile(
    r"(?:(?<![A-Za-z_])([^\W\d_][′\u0302-\u0304]?)|\b(sup|max|min|inf)|[)∫])"
    r"_([{(]|[^\W_∗²³]{1,2}(?![^\W²³])|[∗⊥])"
)
RANK = re.compile("₍([^₍₎]*)₎")
"""An index in brackets: not every letter has a small form, so all are set in full and lowered."""
FULL_SIZE = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋ₖₘₙᵢⱼₗ", "0123456789+−kmnijl")


def typeset(text: str) -> str:
    """Exponents and indices of formulas, raised and lowered; code is left alone.

    >>> typeset("w_i = e^(ε_i·h), `k_i`, k_bar")
    'w<sub>i</sub> = e<sup>ε<sub>i</sub>·h</sup>, `k_i`, k_bar'
    >>> typeset("Σδ_i ≤ sup_{t≤ε} q_t, 10^18")
    'Σδ<sub>i</sub> ≤ sup<sub>t≤ε</sub> q<sub>t</sub>, 10<sup>18</sup>'
    >>> typeset("(CZ)_t, Z_(t − j), (k/j)^.5")
    '(CZ)<sub>t</sub>, Z<sub>t − j</sub>, (k/j)<sup>.5</sup>'
    >>> typeset("x_j² ≤ h₍k̄₊₁₎ − h₍ⱼ₎")
    'x<sub>j</sub>² ≤ h<sub>(k̄+1)</sub> − h<sub>(j)</sub>'
    """
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [formulas(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, formulas(text[end:])])


def coded(text: str) -> str:
    """Names with an underscore in a sentence, as code; indices of formulas have one letter.

    >>> coded("rank and plus_minus of `a_bc`; x_i")
    'rank and `plus_minus` of `a_bc`; x_i'
    """
    return WRITTEN.sub(lambda found: f"`{found['name']}`" if found["name"] else found[0], text)


def formulas(text: str) -> str:
    """The same text with tags for exponents and indices."""
    text = RANK.sub(lambda found: f"<sub>({found[1].translate(FULL_SIZE)})</sub>", text)
    for pattern, tag in ((RAISED, "sup"), (LOWERED, "sub")):
        start = 0
        while found := pattern.search(text, start):
            group = found.lastindex or 1
            inner, after = found[group], found.end()
            if inner in "({":
                after = closing(text, found.end() - 1)
                inner = text[found.end() : after - 1]
            before = text[: found.start(group)].removesuffix("^" if tag == "sup" else "_")
            start = len(before) + len(tag) + 2
            text = f"{before}<{tag}>{inner}</{tag}>{text[after:]}" if after else text
    return text


def closing(text: str, start: int) -> int:
    """Where the bracket that opens at ``start`` has been closed; 0 if it is not."""
    depth = 0
    for place in range(start, min(len(text), start + 120)):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return 0


def natural(name: str) -> list[Any]:
    """Numbers in a name by their size: E2 before E10.

    >>> sorted(["e10-pure.md", "e2a-covid.md", "README.md"], key=natural)
    ['README.md', 'e2a-covid.md', 'e10-pure.md']
    """
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def mentioned(entries: list[Any]) -> set[str]:
    """Every page that the nav names itself."""
    found: set[str] = set()
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found |= mentioned(value) if isinstance(value, list) else {value}
    return found


def spelled_out(entries: list[Any], there: list[str], named: set[str]) -> list[Any]:
    """The nav with globs spelled out: results by experiment, tutorials as they are introduced.

    A page or a glob that stands for nothing is an error: a reader would miss it, and nobody else.

    >>> spelled_out(["a.md", {"More": ["b/*.md"]}], ["a.md", "b/c.md"], {"a.md"})
    ['a.md', {'More': ['b/c.md']}]
    >>> spelled_out(["z.md"], ["a.md"], set())
    Traceback (most recent call last):
    mkdocs.exceptions.PluginError: the nav names z.md, which does not exist; write it or remove it
    """
    kept: list[Any] = []
    order = [*(f"results/{page}.md" for page in experiments()), *tutorials()]
    for entry in entries:
        title, value = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(value, list):
            kept.append({title: spelled_out(value, there, named)})
            continue
        found = [entry] if value in there else []
        if "*" in value:
            found = [
                page
                for page in there
                if fnmatch(page, value) and page.count("/") == value.count("/")
                if page not in named
            ]
            found.sort(key=lambda page: order.index(page) if page in order else len(order))
        if not found:
            raise PluginError(f"the nav names {value}, which does not exist; write it or remove it")
        kept += found
    return kept
