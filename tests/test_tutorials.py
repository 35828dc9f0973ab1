"""Every notebook runs in a kernel, from first cell to last, and is stored without outputs."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pages import PAGES, ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
FIRST = {
    "widgets": "import warnings; warnings.simplefilter('error'); import ipywidgets",
    "no widgets": "import warnings; warnings.simplefilter('error')\n"
    "import sys; sys.modules['ipywidgets'] = None",
}


@pytest.mark.filterwarnings("ignore")  # of the kernel's client; the notebook's are errors
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_a_notebook_runs(
    path: Path,
    first: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if path.stem == "postgres-shop" and "import ipywidgets" in first:  # else on SQLite
        monkeypatch.setenv("SHOP_URL", request.getfixturevalue("postgres_url"))
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_clean(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_every_notebook_is_listed() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        assert f"tutorials/{path.name}" in PAGES["docs/tutorials.md"]
