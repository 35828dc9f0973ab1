"""The wheel, as a stranger installs it: into an empty environment, then the quick start."""

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from pages import PAGES, ROOT, commands


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(words, check=True, capture_output=True, env=clean())
    return folder


@pytest.fixture(scope="module")
def empty(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("stranger")
    venv.create(folder / "env", with_pip=False)
    [wheel] = dist.glob("*.whl")
    words = [sys.executable, "-m", "pip", "--python", str(folder / "env" / "bin" / "python")]
    words += ["install", "--quiet", "--disable-pip-version-check", "--no-compile", str(wheel)]
    subprocess.run(words, check=True, capture_output=True, env=clean())
    return folder


def clean() -> dict[str, str]:
    """The environment of this process without this checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_the_wheel_holds_what_the_code_reads(dist: Path) -> None:
    [wheel] = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        sizes = {entry.filename: entry.file_size for entry in file.infolist()}
    package = ROOT / "src" / "topsecret"
    wanted = {
        f"topsecret/{path.relative_to(package)}": path.stat().st_size
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name: sizes.get(name) for name in wanted} == wanted
    assert "topsecret/py.typed" in sizes
    assert not [name for name in sizes if name.startswith(("tests", "docs", "experiments"))]


def test_the_sdist_holds_tests_and_docs(dist: Path) -> None:
    [sdist] = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    wanted = {"tests/test_packaging.py", "docs/quick-start.md", "mkdocs.yml", "LICENSE", "Makefile"}
    assert wanted <= names
    assert not [name for name in names if name.startswith((".venv", "site/", "demo/"))]


def test_the_quick_start_works_in_an_empty_environment(empty: Path) -> None:
    shown = commands(PAGES["docs/quick-start.md"])
    first = {line.split()[1]: line for line in reversed(shown)}
    for name in ("demo", "plan", "top", "doctor"):
        command = first[name]
        done = subprocess.run(
            [str(empty / "env" / "bin" / "topsecret"), *shlex.split(command)[1:]],
            cwd=empty,
            env=clean(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), command


def test_the_base_install_is_below_300_megabytes(empty: Path) -> None:
    [packages] = (empty / "env").glob("lib/python*/site-packages")
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
    assert size < 300e6


def test_completion_knows_the_commands(empty: Path) -> None:
    asked = {
        "_TOPSECRET_COMPLETE": "complete_bash",
        "COMP_WORDS": "topsecret pl",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [str(empty / "env" / "bin" / "topsecret")],
        env=clean() | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plan"]


def test_no_extra_is_part_of_the_base() -> None:
    base = [
        line for line in importlib.metadata.requires("topsecret") or [] if "extra ==" not in line
    ]
    assert len(base) == 6


def test_everything_that_is_asked_for_is_locked() -> None:
    """By name and version alone: no address of a registry, no file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = project["project"]["dependencies"] + project["build-system"]["requires"]
    for listed in project["project"]["optional-dependencies"].values():
        asked += listed
    for listed in project["dependency-groups"].values():
        asked += listed
    wanted = {re.split(r"[\[<>=]", one)[0].lower() for one in asked} - {"topsecret"}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    form = re.compile(r'([\w.-]+)==[\w.]+(?: ; python_version (?:<|>=) "3\.\d+")?')
    assert all(form.fullmatch(line) for line in pinned)
    assert wanted <= {line.split("==")[0].lower().replace("_", "-") for line in pinned}


def test_what_is_locked_installs_on_debian_12() -> None:
    """Its Python is 3.11.2, and a package may ask for a later 3.11."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0] for line in lines if "==" in line and ";" not in line}
    asked = {}
    for one in importlib.metadata.distributions():
        if one.metadata["Name"] in pinned:
            asked[one.metadata["Name"]] = one.metadata.get("Requires-Python") or ""
    assert len(asked) > 100
    assert [name for name, range_ in asked.items() if "3.11.2" not in SpecifierSet(range_)] == []


@pytest.mark.parametrize("name", ["duckdb", "python-flint", "sqlalchemy", "sqlglot"])
def test_what_sql_and_noise_rest_on_is_bounded_above(name: str) -> None:
    asked = [line for line in importlib.metadata.requires("topsecret") or [] if name in line]
    assert asked
    assert all("<" in line.split(";")[0] for line in asked)
