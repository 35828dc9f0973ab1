"""``topsecret`` as a process of its own, as its users meet it."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "topsecret"]


def run(
    *words: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=os.environ | environment,
        timeout=600,
        check=False,
    )
