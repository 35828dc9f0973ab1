"""How long a start takes, against what is promised: processor seconds, the least of five."""

from __future__ import annotations

import resource
import subprocess
import sys

from benchmarks.row import Row

PROMISED = {
    "import topsecret": 0.4,
    "from topsecret.cli import main; main(['--help'])": 0.6,
}


def run(rounds: int = 5) -> list[Row]:
    return [
        Row(f"{code}, against {limit} s", min(_seconds(code) for _ in range(rounds)), limit, 1.0)
        for code, limit in PROMISED.items()
    ]


def _seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
