"""Logs: one JSON object per line on stderr, about requests and never about data.

A line names the route, not the address; the exception's kind and place, not its text.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
import warnings
from datetime import UTC, datetime

from topsecret.errors import WeakPrivacy

_ENCODED = json.JSONEncoder(default=str).encode  # made once: every request writes a line


def log(event: str, **fields: object) -> None:
    """Write one line."""
    record = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event}
    sys.stderr.write(_ENCODED(record | fields) + "\n")
    sys.stderr.flush()


def where(error: BaseException) -> list[str]:
    """The places an exception passed through: files and lines, no values."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}:{frame.name}" for frame in frames]


class _Lines(logging.Handler):
    """What other packages log, without their texts' arguments and tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        more: dict[str, object] = {}
        if error is not None:
            more = {"kind": type(error).__name__, "where": where(error)}
        log("note", level=record.levelname.lower(), logger=record.name, text=record.msg, **more)


def configure() -> None:
    """Send everything that is logged anywhere through this module."""
    root = logging.getLogger()
    root.handlers[:] = [_Lines()]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
        logger.setLevel(logging.WARNING)
    # Preview and receipt say it to whoever asks; the log is the operator's.
    warnings.simplefilter("ignore", WeakPrivacy)
