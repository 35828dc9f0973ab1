"""Long pages as several: one for each module that is used from outside, one for each command.

The sources stay whole, docs/reference/TOPIC.md and docs/commands.md. On the site they are lists
of what there is, and every link to a part leads to the part's own page. The modules under
"Inside" have none: their topic says what each is for and which file it is.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
MODULE = re.compile(r"^::: ([\w.]+)\n(?:    options: \{(.*)\}\n)?", re.M)
COMMAND = re.compile(r"^## topsecret (\w+)", re.M)
SEPARATOR = "\n\n"
INSIDE = "\n## Inside\n"
NOT_OFFERED = "\nNot meant to be imported, and free to change. The source is in these files.\n\n"
NAMED = re.compile(r"<code>(topsecret[\w.]+)</code>(?!</a>)")
SIGNATURE = re.compile(r'(<div class="doc-signature highlight">.*?<code>)(.*?)(?=</code>)', re.S)
MARKED = re.compile(r'md-nav__item--active">\s*<a href="[^"]*" class="md-nav__link(?=")')
LINK = re.compile(r"\]\([\w./-]*#((?:topsecret|experiments)\.[\w.]+)\)")


def topics() -> dict[str, str]:
    """Every page of the reference by its name."""
    return {path.stem: path.read_text("utf-8") for path in (ROOT / "docs/reference").glob("*.md")}


def with_pages(text: str) -> list[tuple[str, str]]:
    """The modules of a topic that have pages of their own, with their options."""
    return MODULE.findall(text.split(INSIDE)[0])


def homes() -> dict[str, str]:
    """Where each module is described: its own page on the site, or its topic's."""
    found = {}
    for topic, text in topics().items():
        found |= {module: f"reference/{topic}.md" for module, _ in MODULE.findall(text)}
        found |= {module: f"reference/{topic}/{module}.md" for module, _ in with_pages(text)}
    return found


HOMES = homes()


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each module and for each command."""
    for topic, text in topics().items():
        title = text.split("\n", 1)[0].removeprefix("# ")
        for module, options in with_pages(text):
            head = f"---\ntitle: {module}\n---\n\n[{title}](../{topic}.md)\n\n"
            listed = ", ".join(["heading_level: 1", *([options] if options else [])])
            page = f"{head}::: {module}\n    options: {{{listed}}}\n"
            files.append(File.generated(config, HOMES[module], content=page))
    for name, text in commands().items():
        title = f"topsecret {name}"
        head = f"---\ntitle: {title}\n---\n\n[Commands](../commands.md)\n\n# {title}\n"
        text = re.sub(rf"^## topsecret {name}\n", "", text, count=1)
        files.append(File.generated(config, f"commands/{name}.md", content=head + text))
    return files


def on_nav(nav: Any, files: Files, **_: Any) -> Any:
    """Each of these pages leads to the one before and the one after; the list comes before all.

    The list is marked in the navigation while one of its pages is shown.
    """
    lists = {f"reference/{topic}.md": with_pages(text) for topic, text in topics().items()}
    rows = {listing: [HOMES[module] for module, _ in found] for listing, found in lists.items()}
    rows["commands.md"] = [f"commands/{name}.md" for name in commands()]
    for listing, parts in rows.items():
        first, *others = [files.src_uris[place].page for place in (listing, *parts)]
        for before, here, after in zip([first, *others], others, [*others[1:], None], strict=False):
            here.previous_page, here.next_page = before, after or first.next_page
            here.parent = first
    return nav


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lists in place of what has pages of its own, and links to these pages."""
    here = page.file.src_uri
    if here.startswith("reference/") and here.count("/") == 1:
        markdown = markdown.replace(INSIDE, INSIDE + NOT_OFFERED)
        markdown = MODULE.sub(lambda found: entry(found[1], here), markdown)
    if here == "commands.md":
        rows = [
            f"| [`topsecret {name}`](commands/{name}.md) | {text.split(SEPARATOR)[1]} |"
            for name, text in commands().items()
        ]
        begin = COMMAND.split(markdown, maxsplit=1)[0]
        table = re.sub(r" Code: .*\)\. ", " ", "\n".join(["| | |", "| --- | --- |", *rows]))
        markdown = f"{begin}## Every command\n\n{table}\n"
    return LINK.sub(lambda found: f"]({linked(found[1], here)})", markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """A module's name, the title of its page, is broken after a dot or underscore, if at all.

    Where a docstring names another module in full, that is a link to its page. Each line of a
    signature is marked: where it is too long for a phone, its rest is indented.
    """
    here = page.file.src_uri
    if here.startswith("reference/"):
        html = NAMED.sub(lambda found: module_link(found, here), html)
        html = SIGNATURE.sub(with_lines, html)
    name = r"(doc-module-name[^>]*>)([\w.]+)(?=<)"
    return re.sub(name, lambda found: found[1] + re.sub("([._])", r"\1<wbr>", found[2]), html)


def on_post_page(output: str, **_: Any) -> str:
    """The link of the list that a page is in is marked as a page's own is, and scrolled to."""
    return MARKED.sub(r"\g<0> md-nav__link--active", output)


def with_lines(found: re.Match[str]) -> str:
    """A signature, each line in a mark of its own.

    >>> shown = '<div class="doc-signature highlight"><pre><code>f(\\n    k)\\n</code></pre></div>'
    >>> SIGNATURE.sub(with_lines, shown).partition("<code>")[2]
    '<span class="line">f(\\n</span><span class="line">    k)\\n</span></code></pre></div>'
    """
    lines = found[2].rstrip("\n").split("\n")
    return found[1] + "".join(f'<span class="line">{line}\n</span>' for line in lines)


def module_link(found: re.Match[str], here: str) -> str:
    """A name of a module as a link, unless it is on this page or has none of its own."""
    home = HOMES.get(found[1], here)
    target = relative(home, here).removesuffix(".md")
    return found[0] if home == here else f'<a href="{target}.html">{found[0]}</a>'


def commands() -> dict[str, str]:
    """What docs/commands.md says of each command, its members included."""
    text = (ROOT / "docs/commands.md").read_text("utf-8")
    found: dict[str, str] = {}
    _, *parts = COMMAND.split(text)
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        whole = f"## topsecret {name}{part}".replace("](reference/", "](../reference/")
        found[name] = found.get(name, "") + whole
    return found


def entry(module: str, here: str) -> str:
    """A module in the list of its topic: its page or its file, and its first sentence."""
    if HOMES[module] == here:
        file = path_of(module).relative_to(ROOT)
        return f'- <a id="{module}"></a>`{file}`: {first_sentence(module)}\n'
    return f"- [`{module}`]({relative(HOMES[module], here)}): {first_sentence(module)}\n"


def first_sentence(module: str) -> str:
    """The first sentence of a module's docstring.

    >>> first_sentence("topsecret.errors")
    'Everything that topsecret raises on purpose.'
    """
    text = path_of(module).read_text("utf-8")
    return " ".join(text.split('"""')[1].split("\n\n")[0].split()).replace("``", "`")


def path_of(module: str) -> Path:
    """The file that a module is."""
    inside = module.replace(".", "/")
    base = ROOT if inside.startswith("experiments") else ROOT / "src"
    paths = [base / f"{inside}.py", base / inside / "__init__.py"]
    return next(path for path in paths if path.exists())


def linked(name: str, here: str) -> str:
    """Where something is described: on the page of the module that it is in, or in its topic.

    >>> linked("topsecret.accounting.loss.Loss", "accounting.md")
    'reference/accounting/topsecret.accounting.loss.md#topsecret.accounting.loss.Loss'
    """
    module = name
    while module not in HOMES:
        module = module.rpartition(".")[0]
    return f"{relative(HOMES[module], here)}#{name if module in HOMES[module] else module}"


def relative(target: str, here: str) -> str:
    """The way from one page to another."""
    return posixpath.relpath(target, posixpath.dirname(here) or ".")
