"""People and their machines, as plain values: accounts, sessions, keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, get_args

Role = Literal["owner", "analyst"]
Scope = Literal["all", "ask", "read", "metrics"]
"""What a key may do: all that its account may; ask and read; read; fetch the metrics alone."""
SCOPES: tuple[Scope, ...] = get_args(Scope)

# Every browser also claims to be those below it.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("Chrom", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "Mac"),
    ("Linux", "Linux"),
)


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who was recognised."""

    name: str
    role: Role
    scope: Scope = "all"
    key: str = ""
    """The id of the key by which a machine was recognised."""
    ends: float | None = None
    """When that key ends."""
    session: str = field(default="", repr=False)
    """The hash of the session's token by which a person was recognised."""
    first: bool = False
    """Whether the password is one that somebody else handed over."""
    roles: tuple[tuple[str, str], ...] = ()
    """Single datasets and whether this person owns or views them."""

    @property
    def owns(self) -> bool:
        """Whether this is an owner of the service."""
        return self.role == "owner"

    @property
    def owned(self) -> frozenset[str]:
        """The datasets that this person owns without owning the service."""
        return frozenset(name for name, role in self.roles if role == "owner")

    def manages(self, dataset: str) -> bool:
        """Whether this person decides about a dataset."""
        return self.owns or dataset in self.owned

    def may_end(self, user: str, dataset: str) -> bool:
        """Whether a question of somebody's may be ended: another's by an owner's full key alone."""
        return self.name == user or (self.scope == "all" and self.manages(dataset))

    def sees(self, dataset: str) -> bool:
        """Whether this person may see everybody's answers about a dataset."""
        return self.owns or any(name == dataset for name, _ in self.roles)


@dataclass(frozen=True, slots=True)
class Session:
    """A log-in as its person may see it."""

    id: str
    begun: float | None
    agent: str
    here: bool = False
    """Whether it is the one that asks."""

    @property
    def browser(self) -> str:
        """The browser and the system, as people call them."""
        found = [
            next((name for mark, name in marks if mark in self.agent), "")
            for marks in (_BROWSERS, _SYSTEMS)
        ]
        return " on ".join(name for name in found if name) or self.agent[:40]

    @property
    def since(self) -> str:
        """When it began."""
        if self.begun is None:
            return "before an update"
        return datetime.fromtimestamp(self.begun, UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as its user may see it: never the secret."""

    id: str
    label: str
    created: float
    scope: Scope = "all"
    expires: float | None = None

    @property
    def until(self) -> str | None:
        """The day on which it ends."""
        if self.expires is None:
            return None
        return datetime.fromtimestamp(self.expires, UTC).date().isoformat()
