"""Every notebook runs in a kernel, from first cell to last, and is stored without outputs."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pages import PAGES, ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
FIRST = "import warnings; warnings.simplefilter('error')\n"
WIDGETS = "import ipywidgets"
NO_WIDGETS = "import sys; sys.modules['ipywidgets'] = None"
WITHOUT = "monthly-report"
"""DuckDB would show a bar with widgets; that it needs none is seen where files are asked."""


@pytest.mark.filterwarnings("ignore")  # of the kernel's client; the notebook's are errors
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    path: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if path.stem == "postgres-shop":
        monkeypatch.setenv("SHOP_URL", request.getfixturevalue("postgres_url"))
    notebook = nbformat.read(path, as_version=4)
    widgets = NO_WIDGETS if path.stem == WITHOUT else WIDGETS
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FIRST + widgets))
    place = {"metadata": {"path": str(tmp_path)}}
    patience = {"timeout": 600, "startup_timeout": 600}
    NotebookClient(notebook, kernel_name="python3", resources=place, **patience).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_clean(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_every_notebook_is_listed() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        assert f"tutorials/{path.name}" in PAGES["docs/tutorials.md"]
