"""How a service runs: one frozen value that every worker process is started with.

>>> from pathlib import Path
>>> settings = Settings(home=Path("/srv/topsecret"))
>>> Settings.from_json(settings.to_json()) == settings
True
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from topsecret.errors import InvalidParameter

LONGEST_TICK = 3600.0
LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a service keeps its records, and its public limits."""

    home: Path
    """A private folder for the records, unless ``database`` names a PostgreSQL."""
    database: str = field(default="", repr=False)
    """``postgresql://…`` for ledger and records; a SQLite file in ``home`` when empty."""
    witness: Path | None = None
    """The file that notes how far the ledger is; one in ``home`` when None."""
    files: tuple[Path, ...] = ()
    """The folders that the files of datasets may lie in."""
    sources: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Names and addresses of databases whose tables may be registered."""
    tick: float = 1.0
    """Fresh answers are shown only a whole number of ticks after their question."""
    https: bool = False
    """Whether browsers reach the service by HTTPS alone: cookies are then marked so."""
    prefix: str = ""
    """The path under which a proxy serves it, ``/topsecret``."""
    openid_issuer: str = ""
    """A provider of OpenID Connect by which people may sign in."""
    openid_client: str = ""
    """The id under which the provider knows this service."""
    openid_secret: str = field(default="", repr=False)
    """The secret that goes with it."""
    openid_claim: str = "preferred_username"
    """What the provider calls people by; it must be unique, and not theirs to change."""
    keep_days: int | None = None
    """Days after which questions that ended are forgotten here; the ledger keeps its own."""
    notify: str = field(default="", repr=False)
    """A command that is told of what a schedule has answered."""
    engines: int = 2
    """How many questions one worker process counts at the same time."""
    limit: float = 600.0
    """Seconds that one question may be counted."""
    grace: float = 30.0
    """Seconds that questions under way have to end when the service stops."""
    requests_per_minute: int = 1200
    """For each account."""
    questions_per_minute: int = 60
    """Asked by each account."""
    plans_per_minute: int = 240
    """Previewed by each account."""
    tries_per_minute: int = 10
    """Failed log-ins from one address; for one account, from wherever, five times as many."""

    def __post_init__(self) -> None:
        if not 0 < self.tick <= LONGEST_TICK:
            raise InvalidParameter(
                f"tick={self.tick} must be above 0 and at most {LONGEST_TICK:g} seconds; "
                "1 is the default"
            )

        if not self.limit > 0:
            raise InvalidParameter(f"limit={self.limit} must be above 0 seconds")
        if self.prefix and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", self.prefix):
            raise InvalidParameter(f"--prefix {self.prefix!r} must look like /topsecret")
        if self.openid_issuer:
            host = urlsplit(self.openid_issuer).hostname or ""
            if not self.openid_issuer.startswith("https://") and host not in LOCAL:
                raise InvalidParameter("--openid-issuer begins with https://")
            if not self.openid_client:
                raise InvalidParameter("--openid-issuer needs --openid-client beside it")
        elif self.openid_client:
            raise InvalidParameter("--openid-client needs --openid-issuer beside it")

    @property
    def place(self) -> str:
        """Where ledger and records are."""
        return self.database or str(self.home / "service.db")

    @property
    def witness_file(self) -> Path:
        """Where it is noted how far the ledger is."""
        return self.witness or self.home / "witness.json"

    @property
    def mark_file(self) -> Path:
        """Where the processes of this service tell each other that somebody's rights changed."""
        return self.home / "rights.mark"

    def to_json(self) -> str:
        """The settings as text for a worker's environment."""
        record = asdict(self)
        record["home"], record["files"] = str(self.home), [str(path) for path in self.files]
        record["witness"] = None if self.witness is None else str(self.witness)
        return json.dumps(record)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The settings of a worker."""
        record = json.loads(text)
        record["home"] = Path(record["home"])
        record["witness"] = None if record["witness"] is None else Path(record["witness"])
        record["files"] = tuple(Path(path) for path in record["files"])
        record["sources"] = tuple((name, url) for name, url in record["sources"])
        return cls(**record)


def default_home() -> Path:
    """A folder in the platform's data directory."""
    import platformdirs

    return platformdirs.user_data_path("topsecret", appauthor=False) / "service"
