"""``topsecret`` as its users meet it: here with the test's own noise, or as another process."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from topsecret.cli import main

COMMAND = [sys.executable, "-m", "topsecret"]


def run(
    *words: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """In this process, which has everything imported: quick, and the noise repeats."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    before = dict(os.environ)  # a command may set variables for its workers
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("default", UserWarning)  # as in a process of its own
        for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        for name, value in environment.items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(words)
            except SystemExit as stop:
                code = stop.code
            finally:
                os.environ.clear()
                os.environ.update(before)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code if isinstance(code, int) else 0, *texts)


def run_apart(
    *words: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """As a process of its own, with the system's randomness."""
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
