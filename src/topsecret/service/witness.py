"""A witness against rollback: what the ledger has reached, noted in a file of its own.

Who restores an old copy of the database, or loses it, forgets what was spent since. The file holds
the length and the end of each dataset's chain of entries, and the service neither starts nor goes
on with a ledger that has not got them. Keep it away from the database and its backups
(``--witness``).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Lock

from topsecret.errors import InvalidParameter, LedgerError
from topsecret.ledger import Ledger
from topsecret.service.audit import Trail

Reached = dict[str, tuple[int, str]]
"""For each dataset: how many entries it has, and the hash of the last."""

AUDIT = " audit"
"""Beside the datasets: the audit trail. No dataset has a space in its name."""


class Witness:
    """The file of one service."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._forgotten: str | None = None

    def read(self) -> Reached:
        """What was noted; nothing where there is no file yet."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError):
            text = ""
        try:
            found = json.loads(text).items()
            return {str(name): (int(entries), str(head)) for name, (entries, head) in found}
        except (ValueError, TypeError, AttributeError):
            raise InvalidParameter(f"the witness {self._path} cannot be read; restore it") from None

    def check_folder(self) -> None:
        """Refuse a file that can never be written: nothing could be spent."""
        beside = self._beside()
        try:
            beside.write_text("", encoding="utf-8")
            beside.unlink()
        except OSError:
            raise InvalidParameter(
                f"the witness {self._path} cannot be written; check that its folder exists, its "
                "permissions and free space"
            ) from None

    def check(self, ledger: Ledger, trail: Trail) -> None:
        """Refuse a ledger that has forgotten what the witness saw, or an audit trail."""
        forgotten = self._missed(ledger, trail, self.read(), ledger.reached())
        if forgotten is not None:
            raise InvalidParameter(forgotten)

    def trust(self) -> None:
        """Refuse to spend from a ledger that had forgotten something when it was last looked at."""
        if self._forgotten is not None:
            raise LedgerError(self._forgotten)

    def _missed(self, ledger: Ledger, trail: Trail, noted: Reached, reached: Reached) -> str | None:
        """What was noted and is not there any more, in words."""
        for name, (entries, head) in noted.items():
            if reached.get(name) == (entries, head):
                continue
            if name == AUDIT:
                if not trail.passed(entries, head):
                    return (
                        f"the audit trail has forgotten entries that {self._path} has witnessed: "
                        "an old copy was restored. Restore the latest copy. To go on all the same, "
                        "move the file away"
                    )
            elif name not in reached or not ledger.passed(name, entries, head):
                return (
                    f"the ledger has forgotten entries of dataset {name!r} that {self._path} has "
                    "witnessed: an old copy was restored, or the database was lost. Restore the "
                    "latest copy. To go on without what was spent since, move the file away"
                )
        return None

    def note(self, ledger: Ledger, trail: Trail) -> None:
        """Note how far the ledger and the audit trail are, unless they went back.

        Nothing more is spent while they did, or while the file cannot be read or written.
        """
        with self._lock:
            try:
                older = self.read()
            except InvalidParameter as unreadable:
                self._forgotten = str(unreadable)
                raise
            # Read after the file: whatever another process has noted there is in the store.
            reached = ledger.reached() | {AUDIT: trail.reached()}
            missed = self._missed(ledger, trail, older, reached)
            newest = older | {
                name: now for name, now in reached.items() if now[0] >= older.get(name, (0, ""))[0]
            }
            if missed is None and newest != older:
                missed = self._written(newest)
            self._forgotten = missed
            self.trust()

    def _written(self, newest: Reached) -> str | None:
        """Why it could not be written, in words."""
        beside = self._beside()
        try:
            beside.write_text(json.dumps(newest, indent=1), encoding="utf-8")
            beside.chmod(0o600)
            beside.replace(self._path)
        except OSError:
            return "the witness cannot be written; check its folder's permissions and free space"
        return None

    def _beside(self) -> Path:
        """Where it is written before it takes the old one's place."""
        return self._path.with_name(f"{self._path.name}.{os.getpid()}")
