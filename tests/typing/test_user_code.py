"""Type checkers accept what works and refuse what does not."""

import re
from pathlib import Path

from mypy import api

ROOT = Path(__file__).parents[2]
WRITTEN = Path(__file__).with_name("user_code.txt")


def test_user_code_is_typed(tmp_path: Path) -> None:
    lines = WRITTEN.read_text(encoding="utf-8").splitlines()
    marked = {n for n, line in enumerate(lines, start=1) if line.endswith("# refused")}
    code = tmp_path / "user_code.py"
    code.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # With the project's own settings and cache, which the checks before the tests have filled.
    options = [f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / '.mypy_cache'}"]
    shown, failures, _ = api.run([*options, str(code)])
    assert not failures
    told = re.findall(rf"{code.name}:(\d+): error: (.*)", shown)
    refused = {int(number) for number, _ in told}
    assert refused == marked, "\n".join(f"{number}: {what}" for number, what in told)
