"""Every page is run, not only read."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from command import run
from pages import PAGES, ROOT, blocks, commands

ELSEWHERE = {
    "docs/service.md": "tests/service/test_page.py",
    "docs/ledger.md": "tests/ledger/test_ledger_page.py",
    "docs/spark.md": "tests/sources/test_spark.py",
}
"""Pages that are run by a test of their own, or need a server; and who makes the same calls."""

WITH_PYTHON = [
    name for name, page in PAGES.items() if blocks("python", page) and name not in ELSEWHERE
]
WITH_COMMANDS = [name for name, page in PAGES.items() if commands(page) and name not in ELSEWHERE]

WITHOUT = dict.fromkeys(
    ("TOPSECRET_SITE_SOURCE", "TOPSECRET_SITE_OUTPUTS", "TOPSECRET_SITE_SEARCH"), "false"
)
"""What takes long in the site: source and signatures, notebooks' outputs, the search's index."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from topsecret.sources.demo_data import write_checkins

    folder = tmp_path_factory.mktemp("pages")
    write_checkins(folder / "demo")
    return folder


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", WITH_PYTHON)
def test_python_runs(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    code = compile("\n".join(blocks("python", PAGES[name])), name, "exec")
    exec(code, {"__name__": "__main__"})


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_commands_run(folder: Path, name: str) -> None:
    """In the page's order: one opens a budget, the next spends from it."""
    for command in commands(PAGES[name]):
        words = shlex.split(command, comments=True)[1:]
        ledger = str(folder / f"{Path(name).stem}.db")
        done = run(*words, cwd=folder, TOPSECRET_LEDGER=ledger)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if name == "README.md" and words[0] == "top":
            begun = PAGES[name].split("Receipt\n")[1].split("  …\n")[0]
            assert f"\nReceipt\n{begun}" in done.stdout


def test_a_shown_table_is_the_one_printed() -> None:
    done = run("account", "picks", "50", "0.1")
    assert f"```\n{done.stdout}```\n" in PAGES["docs/accounting.md"]


def test_a_shown_plan_begins_as_the_one_printed() -> None:
    done = run("plan", "-k", "10", "--epsilon", "1")
    [shown] = [block for block in blocks("text", PAGES["docs/planning.md"]) if "Plan for" in block]
    assert done.stdout.startswith(shown)


def test_the_first_use_works_as_pasted_into_a_fresh_shell(tmp_path: Path) -> None:
    """After ``make demo``, block by block, in an environment that holds nothing."""
    from topsecret.sources.demo_data import write_checkins

    write_checkins(tmp_path / "demo")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    section = PAGES["README.md"].split("## First use")[1].split("## ")[0]
    shell, python = "".join(blocks("sh", section)), "".join(blocks("python", section))
    pasted = f"set -e\n{shell}python - <<'END'\n{python}\nEND\n"
    done = subprocess.run(
        ["env", "-i", "PATH=/usr/bin:/bin", "bash", "-c", pasted],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Receipt") == 2


def test_set_up_is_two_commands() -> None:
    lines = blocks("sh", PAGES["README.md"])[0].splitlines()
    assert [line.split("#")[0].strip() for line in lines] == ["make demo", "make test"]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*words, "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"} | WITHOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "fonts.googleapis.com" not in home
    for part, expected in (
        (
            "errors.html",
            'href="#topsecret.errors.QueryRefused"><code class="whole">',
        ),  # no drawing: it wraps
        ("choosing.html", '<table data-numbers="all">'),
        ("404.html", '<a href="/index.html">Go to the first page.</a>'),
        ("results/tested-top-k.html", "others</summary>"),
        ("tutorials.html", '<a href="tutorials/team-service.html">A service for a team</a>'),
        ("tutorials/team-service.html", '<a href="team-service.ipynb">This page as a notebook</a>'),
    ):
        assert expected in (tmp_path / "site" / part).read_text(encoding="utf-8"), part
    for part in ("commands/plan.html", "reference/ledger/topsecret.ledger.chain.html"):
        shown = (tmp_path / "site" / part).read_text(encoding="utf-8")
        assert "md-footer__link--prev" in shown
        assert "md-footer__link--next" in shown
    reference = tmp_path / "site" / "reference"
    shown = {page: page.read_text(encoding="utf-8") for page in reference.glob("*/*.html")}
    of_name = {page.stem.removeprefix("topsecret."): text for page, text in shown.items()}
    for name, expected in (
        ("mechanisms.gumbel", '<code class="whole">scale</code></td>'),  # of a dataclass
        ("questions.top_k", "In whose name it is asked, where the budget has allowances.</td>"),
        (
            "service.shapes",
            "A text as it is; several by commas.</td>",
        ),  # what goes over the wire
        ("sources.engines.spark", '<code class="whole">trust_view</code></td>'),  # an __init__
        ("service.api", "<code>POST /api/v1/datasets/{dataset}/ask</code>"),
        ("mechanisms.pick_prune_test", "<sub>j</sub>²"),
        ("mechanisms.clipped_sums", '<a href="../../proofs/weighted-histogram.html">'),
        ("noise.bits", '<a href="../../glossary.html#ball">'),
        ("client", '<a href="topsecret.client.service.html">'),
    ):
        assert expected in of_name[name], name
    assert 'SystemBits"' not in of_name["mechanisms.private_choice"]  # another module's
    for page, text in shown.items():  # links in docstrings, which MkDocs does not check
        for link in set(re.findall(r'href="(\.\./\.\./[\w/-]+\.html)[#"]', text)):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
