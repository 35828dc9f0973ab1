"""What MkDocs cannot say in its configuration: pages from elsewhere, and a nav of globs.

README, CONTRIBUTING and CHANGELOG stay where a visitor of the repository looks for them and are
pages of the site too, with their links turned round. A notebook is a page as well.
"""

from __future__ import annotations

import ast
import json
import re
from fnmatch import fnmatch
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


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside, and spell out the globs of the nav."""
    for page, source in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=turned(text)))
    for notebook in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        page = f"tutorials/{notebook.stem}.md"
        text = told(json.loads(notebook.read_text(encoding="utf-8")))
        files.append(File.generated(config, page, content=text))
    there = sorted(file.src_uri for file in files.documentation_pages())
    config.nav = spelled_out(config.nav, there, mentioned(config.nav))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lists may follow a paragraph directly, as they may where the repository is browsed.

    A result is followed by the code that made it.
    """
    folder, _, name = page.file.src_uri.rpartition("/")
    module = experiments().get(name.removesuffix(".md")) if folder == "results" else None
    if module:
        link = f"../reference/experiments.md#experiments.{module}"
        markdown += f"\n\nThe code: [`experiments.{module}`]({link}).\n"
    return spaced(markdown)


def experiments() -> dict[str, str]:
    """The module behind each page of results, read from the experiments' registry."""
    tree = ast.parse((ROOT / "experiments" / "registry.py").read_text(encoding="utf-8"))
    calls = [
        [getattr(argument, "value", None) for argument in node.args]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Experiment"
    ]
    return {page: module for _, module, page, *_ in calls} | {"tested-top-k": "tested"}


def turned(text: str) -> str:
    """Links of a page at the root, as links of a page in docs/."""
    text = re.sub(r"\]\(docs/", "](", text)
    text = re.sub(r"\[([^\]]*)\]\(LICENSE\)", r"\1", text)
    return re.sub(r"\]\(([A-Z]+\.md)", lambda found: f"]({BY_NAME[found[1]]}", text)


def told(notebook: dict[str, Any]) -> str:
    """A notebook as a page, without outputs."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    shown = [
        f"```python\n{text}\n```" if kind == "code" else text.replace(".ipynb)", ".md)")
        for kind, text in cells
    ]
    return "\n\n".join(shown) + "\n"


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


def mentioned(entries: list[Any]) -> set[str]:
    """Every page that the nav names itself."""
    found: set[str] = set()
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found |= mentioned(value) if isinstance(value, list) else {value}
    return found


def spelled_out(entries: list[Any], there: list[str], named: set[str]) -> list[Any]:
    """The nav with globs spelled out.

    A page or a glob that stands for nothing is an error: a reader would miss it, and nobody else.

    >>> spelled_out(["a.md", {"More": ["b/*.md"]}], ["a.md", "b/c.md"], {"a.md"})
    ['a.md', {'More': ['b/c.md']}]
    >>> spelled_out(["z.md"], ["a.md"], set())
    Traceback (most recent call last):
    mkdocs.exceptions.PluginError: the nav names z.md, which does not exist; write it or remove it
    """
    kept: list[Any] = []
    for entry in entries:
        title, value = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(value, list):
            kept.append({title: spelled_out(value, there, named)})
            continue
        found = [entry] if value in there else []
        if "*" in value:
            found = [page for page in there if fnmatch(page, value) and page not in named]
        if not found:
            raise PluginError(f"the nav names {value}, which does not exist; write it or remove it")
        kept += found
    return kept
