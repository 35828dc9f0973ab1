"""Standard output: styled on a terminal, plain text without trailing spaces in a file or a pipe."""

from __future__ import annotations

import re
import sys
from typing import IO, cast

from rich.console import Console


class Plain:
    """Standard output without the spaces with which a table fills its lines.

    No ``io.TextIOBase``: that flushes when it is collected, and a full disk would be told twice.
    """

    def write(self, text: str) -> int:
        """The text, its lines cut after their last letter."""
        sys.stdout.write(re.sub(r" +$", "", text, flags=re.MULTILINE))
        return len(text)

    def flush(self) -> None:
        """Pass on what was written."""
        sys.stdout.flush()


def terminal() -> Console:
    """Where answers are printed: names from the data are shown as they are, never as markup."""
    file = None if sys.stdout.isatty() else cast(IO[str], Plain())
    return Console(file=file, highlight=False, markup=False, emoji=False)
