"""The operator's command, told of scheduled answers: mail and web hooks are its business.

It gets one JSON object on its standard input: schedule, name, run, account, dataset, state, answer.
The answer is an id; what was answered is in no notice.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from threading import Thread

from topsecret.errors import InvalidParameter
from topsecret.service.logs import log

PATIENCE = 60.0
"""Seconds that the command which sends a notice may take."""
OURS = "TOPSECRET_"
"""What begins like this in the environment may be an address with a password."""


def words_of(command: str) -> list[str]:
    """The command and its arguments; no shell reads it."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words or shutil.which(words[0]) is None:
        # The arguments may hold a secret: nothing of them is repeated.
        raise InvalidParameter("--notify must begin with a program that can be run")
    return words


class Notices:
    """Runs the command, once for each notice and in nobody's way."""

    def __init__(self, command: str) -> None:
        self._words = shlex.split(command)  # which was looked at when the service was started

    def tell(self, what: Mapping[str, object]) -> None:
        """Note in the log what has become of a run, and tell the command."""
        log("schedule", **{key: value for key, value in what.items() if key != "name"})
        if self._words:
            Thread(target=self._run, args=(dict(what),), name="notice", daemon=True).start()

    def _run(self, what: dict[str, object]) -> None:
        environment = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
        try:
            done = subprocess.run(
                self._words,
                input=json.dumps(what) + "\n",
                text=True,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
                check=False,
            )
            status: int | str = done.returncode
        except (OSError, subprocess.SubprocessError) as error:
            status = type(error).__name__
        if status != 0:
            log("notice failed", schedule=what["schedule"], run=what["run"], status=status)
