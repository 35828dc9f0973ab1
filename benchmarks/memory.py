"""The most memory that this process has held."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak() -> float:
    """In MiB. Linux counts what the parent held into ``ru_maxrss``: its own record is asked."""
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [one for one in status.read_text().splitlines() if one.startswith("VmHWM:")]
        return int(line.split()[1]) / 2**10
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 2**10
