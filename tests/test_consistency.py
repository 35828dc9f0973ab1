"""What the code offers and what the pages say are the same."""

import ast
import doctest
import importlib
import importlib.util
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import topsecret
from pages import PAGES, ROOT
from topsecret import calibration, errors, mechanisms
from topsecret.cli.commands import app
from topsecret.cli.doctor import OPTIONAL

PACKAGE = ROOT / "src" / "topsecret"
WORDS = "\n".join(PAGES.values())


def tracked() -> list[str]:
    """What the repository holds; all files where git is not installed."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git") is None:
        inside = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        made = re.compile(r"\.venv|\.git/|__pycache__|\..*_cache|site/|demo/|.*egg-info")
        return [str(path) for path in inside if not made.search(str(path))]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


TRACKED = tracked()


def commands(group: Any, path: str = "topsecret") -> Iterator[tuple[str, Any]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{path} {name}")


COMMANDS = list(commands(typer.main.get_command(app)))


def generated(folder: str, name: str) -> Any:
    path = ROOT / "docs" / folder / f"{name}.py"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_page_of_commands_is_up_to_date() -> None:
    assert generated("site", "commands").page() == PAGES["docs/commands.md"], "run make docs"


@pytest.mark.parametrize(
    "name", ["commands", "docstrings", "examples", "mathematics", "pages", "short_pages"]
)
def test_the_site_is_made_as_its_maker_says(name: str) -> None:
    assert doctest.testmod(generated("site", name)).failed == 0


def test_the_pictures_are_up_to_date() -> None:
    for name, picture in generated("pictures", "draw").PICTURES.items():
        drawn = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
        assert picture.svg() == drawn, "run make docs"
        assert f"pictures/{name}.svg" in PAGES["docs/mechanisms.md"]


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_a_command_explains_itself(path: str, command: Any) -> None:
    assert command.help, f"{path} has no help"
    for parameter in command.params:
        assert parameter.help, f"{path}: {parameter.name} has no help"
    if not hasattr(command, "commands"):
        assert re.search(rf"^\s*{path}\b", command.help, re.MULTILINE), f"{path} has no example"


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS])
def test_a_command_is_used_on_a_page_that_somebody_wrote(path: str) -> None:
    written = "\n".join(page for name, page in PAGES.items() if name != "docs/commands.md")
    assert path in written


@pytest.mark.parametrize("name", calibration.NAMES)
def test_a_mechanism_has_its_paragraph_and_its_picture(name: str) -> None:
    assert f"`{name}`" in PAGES["docs/mechanisms.md"]
    assert f"`{name}`" in PAGES["docs/choosing.md"]
    assert (ROOT / "docs" / "pictures" / f"{name}.svg").exists()


@pytest.mark.parametrize("name", sorted(set(mechanisms.__all__) - {"Mechanism"}))
def test_the_proof_of_a_mechanism_is_on_the_site(name: str) -> None:
    module = getattr(mechanisms, name).__module__
    assert f"::: {module}\n" in PAGES["docs/reference/mechanisms.md"]
    assert f"`{name}`" in PAGES["docs/mechanisms.md"]
    assert "Statement" in importlib.import_module(module).__doc__


def error_classes() -> list[type[Exception]]:
    found = [errors.TopSecretError]
    for known in found:
        found += [below for below in known.__subclasses__() if below not in found]
    return [one for one in found if one.__module__.startswith("topsecret")]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_an_error_is_in_the_tree_and_says_what_it_is(error: type[Exception]) -> None:
    assert error.__module__ == "topsecret.errors"
    assert re.search(rf"[─ ]{error.__name__}\b", errors.__doc__ or "")
    assert error.__doc__


def test_a_route_says_what_it_does() -> None:
    from topsecret.service.app import ROUTERS

    routes = [route for router in ROUTERS for route in router.routes]
    assert routes
    for route in routes:
        assert route.endpoint.__doc__, f"{route.path} has no description"


def test_every_environment_variable_is_documented() -> None:
    used = {
        word
        for path in PACKAGE.rglob("*.py")
        for word in re.findall(r"\bTOPSECRET_[A-Z_]+\b", path.read_text(encoding="utf-8"))
    }
    assert {word for word in used if word not in WORDS} == set()


def test_every_extra_is_documented_and_part_of_all() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    table = PAGES["docs/quick-start.md"].split("<!-- extras -->")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == set(extras)
    offered = {install for _, _, install in OPTIONAL.values()}
    assert {f".[{extra}]" for extra in extras} - offered == {".[all]"}
    [everything] = extras["all"]
    assert set(re.findall(r"[\w-]+", everything)) - {"topsecret"} == set(extras) - {"all"}


def modules() -> list[str]:
    """Every module of the package that holds code of its own."""
    paths = [path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")]
    return sorted(".".join(path.parts) for path in paths if not path.name.startswith("__"))


def test_every_module_is_in_the_reference_once() -> None:
    shown = re.findall(r"^::: ([\w.]+)", WORDS, re.MULTILINE)
    assert [name for name in modules() if name not in shown] == []
    assert [name for name in set(shown) if shown.count(name) > 1] == []


def test_every_experiment_is_in_the_reference() -> None:
    shown = PAGES["docs/reference/experiments.md"]
    for path in (ROOT / "experiments").glob("[a-z]*.py"):
        assert f"::: experiments.{path.stem}\n" in shown


EXPLAINING = [name for name in PAGES if re.fullmatch(r"(README|docs/(proofs/)?[\w-]+)\.md", name)]


@pytest.mark.parametrize("name", EXPLAINING)
def test_the_code_of_a_page_is_two_clicks_away(name: str) -> None:
    """A page leads to the reference, where modules have their source or file; links are real."""
    page, folder = PAGES[name], (ROOT / name).parent
    links = re.findall(r"\]\(((?:\.\./|docs/)?reference/[\w-]+\.md)(#[\w.]+)?\)", page)
    assert links or "\n::: topsecret." in page, f"{name} does not lead to any code"
    for target, anchor in links:
        shown = (folder / target).read_text(encoding="utf-8")
        if anchor:
            found = re.findall(r"^::: ([\w.]+)", shown, re.MULTILINE)
            assert any(f"{anchor[1:]}.".startswith(f"{module}.") for module in found), anchor


def test_the_names_in_the_package_are_documented() -> None:
    for name in topsecret.__all__:
        assert name.startswith("__") or re.search(rf"\b{name}\b", WORDS)


def test_a_page_is_reached_by_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    for name in PAGES:
        page = name.removeprefix("docs/")
        folder = page.rpartition("/")[0]
        assert name == "README.md" or f" {page}\n" in nav or f"{folder}/*.md" in nav, name


TEXTS = [
    name
    for name in TRACKED
    if Path(name).suffix in {".py", ".md", ".toml", ".yml", ".ipynb", ".html", ".js", ".css"}
    or Path(name).name == "Makefile"
]
GENERATED = {"docs/commands.md"}  # as long as there are commands


def test_a_file_has_at_most_500_lines() -> None:
    """One test for all files, which names every offender."""
    paths = [ROOT / name for name in TEXTS if name not in GENERATED and name[-6:] != ".ipynb"]
    long = [
        str(path.relative_to(ROOT))
        for path in paths
        if path.exists() and len(path.read_text(encoding="utf-8").splitlines()) > 500
    ]
    assert long == []


def test_no_file_names_a_machine() -> None:
    places = re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt|opt)/\w+|https?://(?:10|192)\.")
    found = [
        name
        for name in TEXTS
        if (ROOT / name).exists() and places.search((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert found == []


def test_no_file_leans_on_a_page_that_is_not_here() -> None:
    """An argument stands in docs/proofs, in a docstring or in a paper that anybody can get."""
    elsewhere = "SP" + "EC"
    found = [
        name
        for name in TEXTS
        if (ROOT / name).exists() and elsewhere in (ROOT / name).read_text(encoding="utf-8")
    ]
    assert found == []


def test_a_proof_that_the_code_names_exists() -> None:
    for name in TEXTS:
        if (ROOT / name).suffix == ".py" and (ROOT / name).exists():
            text = (ROOT / name).read_text(encoding="utf-8")
            for page in re.findall(r"docs/(?:proofs/|reference/)?[a-z-]+\.md", text):
                assert (ROOT / page).exists(), f"{name} names {page}"


def test_the_changelog_begins_with_privacy() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for release in re.split(r"^## ", changes, flags=re.MULTILINE)[1:]:
        assert re.search(r"^### (.+)$", release, re.MULTILINE)[1] == "Privacy"
    for name in {*mechanisms.__all__} - {"Mechanism"}:
        assert f"`{name}`" in changes
    for path, _ in COMMANDS[1:]:
        assert path.split()[1] in changes


def test_the_documented_modules_have_a_docstring() -> None:
    for name in re.findall(r"^::: (topsecret[\w.]*)", WORDS, re.MULTILINE):
        path = PACKAGE.joinpath(*name.split(".")[1:])
        source = (
            path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
        )
        assert ast.get_docstring(ast.parse(source.read_text(encoding="utf-8")))


def test_every_keyword_of_a_question_is_explained() -> None:
    from topsecret.questions.question import Keywords

    page = (ROOT / "docs" / "reference" / "package.md").read_text("utf-8")
    table = page.split("## The keywords of a question")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert sorted(listed) == sorted(Keywords.__annotations__)
