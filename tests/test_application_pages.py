"""The pages on PATE and rankings are run, not only read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
BLOCKS = [
    pytest.param(code, id=f"{page} {number}")
    for page in ("pate", "ranking")
    for number, code in enumerate(
        re.findall(
            r"^```python\n(.*?)^```$",
            (DOCS / f"{page}.md").read_text(encoding="utf-8"),
            flags=re.MULTILINE | re.DOTALL,
        ),
        start=1,
    )
]


@pytest.mark.parametrize("code", BLOCKS)
def test_the_example_runs(code: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)
