"""Other libraries, each in an environment of its own that is thrown away afterwards.

``TOPSECRET_PEERS`` may name a folder in which the environments are kept and found again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Unavailable(Exception):
    """A library could not be installed or run; the message says in a few words why."""


@contextmanager
def environment(name: str, requirements: Sequence[str]) -> Iterator[Path]:
    """The Python of a fresh environment with these requirements."""
    kept = os.environ.get("TOPSECRET_PEERS")
    if kept and (Path(kept) / name / "bin" / "python").exists():
        yield Path(kept) / name / "bin" / "python"
        return
    with tempfile.TemporaryDirectory(prefix=f"topsecret-{name}-") as folder:
        _call([sys.executable, "-m", "venv", folder], 120, "no environment could be made")
        python = Path(folder) / "bin" / "python"
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _call([*install, *requirements], 900, "not to be installed here")
        yield python


def ask(python: Path, script: Path, *arguments: object, seconds: float = 600) -> dict[str, Any]:
    """Run a script there; its last line is JSON."""
    words = [str(python), str(script.resolve()), *map(str, arguments)]
    with tempfile.TemporaryDirectory(prefix="topsecret-peer-") as folder:
        out = _call(words, seconds, "did not run", folder)  # Spark leaves its warehouse behind
    return dict(json.loads(out.strip().splitlines()[-1]))


def _call(words: Sequence[str], seconds: float, complaint: str, folder: str = ".") -> str:
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=folder,
            env=_activated(Path(words[0])),
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{complaint}: more than {seconds:g} s") from None
    if done.returncode:
        if done.returncode < 0:
            raise Unavailable(f"{complaint}: ended by signal {-done.returncode}")
        # Spark leaves its progress on the error stream.
        lines = [line for line in done.stderr.splitlines() if line.strip() and "Stage" not in line]
        raise Unavailable(f"{complaint}: {_short(lines[-1]) if lines else 'no message'}")
    return done.stdout


def _short(line: str) -> str:
    """A message without the paths of this machine."""
    return re.sub(r"\(?(?:/[\w.@+-]+){2,}\)?", "…", line.strip())[:160]


def _activated(python: Path) -> dict[str, str]:
    """As if the environment were activated; our own paths would leak our packages into it."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return kept | {"PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
