"""The command line: a thin layer over the library, one module per command.

To add a command, write ``cli/<command>.py`` that decorates a function with ``@app.command()``,
and import it in ``commands`` below. Heavy modules are imported inside the function, so that
``topsecret --help`` stays quick.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from topsecret.errors import TopSecretError, WeakPrivacy


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; a mistake or a refusal ends in one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # an item's name may not fit the terminal's encoding
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warn_with(warnings.showwarning)
    code = _run(sys.argv[1:] if arguments is None else list(arguments))
    try:
        sys.stdout.flush()
    except OSError as error:  # the reader of a pipe has left, or the disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or _refused(error)  # a command that met it has said so
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    from topsecret.cli.commands import app

    try:
        outcome = app(arguments, prog_name="topsecret", standalone_mode=False)
    except TopSecretError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _refused(error)
    except Exception as error:
        # A wrong option: typer's own error classes have moved between its versions.
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if "unexpected extra argument" in message:
            message += "; put a pattern of files into quotes: 'events/*.csv'"
        command = getattr(getattr(error, "ctx", None), "command_path", "topsecret")
        return _complain(f"{message} (see {command} --help)") if message else 2
    return outcome if isinstance(outcome, int) else 0


def _warn_with(others: Callable[..., None]) -> Callable[..., None]:
    """A warning of ours is one line on stderr."""

    def warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, WeakPrivacy):
            note = f"topsecret: warning: {message} (--accept-weak-privacy silences this)\n"
            sys.stderr.write(note)
        else:
            others(message, category, *place, **more)

    return warn


def _refused(error: OSError) -> int:
    """What the operating system refused, in its own words: they hold no data."""
    if isinstance(error, BrokenPipeError):
        return 1
    place = f"{error.filename}: " if isinstance(error.filename, str) else ""
    return _complain(f"{place}{error.strerror}; check the path, its permissions and the disk")


def _complain(message: str) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"topsecret: {line}\n")
    return 2
