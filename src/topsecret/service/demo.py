"""A service to try out: the demo's made-up check-ins, an owner, an analyst with a share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from topsecret.service.auth.credentials import new_password
from topsecret.service.serve import Say
from topsecret.service.settings import Settings
from topsecret.service.state import Parts
from topsecret.sources.demo_data import write_checkins

OWNER, ANALYST = "owner", "ann"


def trial(settings: Settings, folder: Path, say: Say) -> Settings:
    """Make what is missing in the folder and say how to log in: the passwords are new each time."""
    home = folder / "service"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "checkins.csv"
    if not path.exists():
        write_checkins(folder)
    tried = replace(settings, home=home, database="", files=(folder.resolve(),))
    parts = Parts(tried)
    passwords = {OWNER: new_password(), ANALYST: new_password()}
    if parts.accounts.empty:
        parts.accounts.add(OWNER, "owner", passwords[OWNER])
        parts.accounts.add(ANALYST, "analyst", passwords[ANALYST])
        register(parts, path.name)
        parts.datasets.allow("checkins", ANALYST, {"epsilon": 3.0})
        parts.datasets.allow("checkins", OWNER, {"epsilon": 2.0})
    else:
        for name, password in passwords.items():
            parts.accounts.set_password(name, password)
    parts.ledger.close()
    parts.store.close()
    for name, password in passwords.items():
        say(f"  log in as {name:<6} with {password}")
    return tried


def register(parts: Parts, file: str) -> None:
    """Register the demo's check-ins."""
    from topsecret.service.datasets import NewDataset

    parts.datasets.register(
        NewDataset(
            "checkins",
            "Check-ins in the city",
            file,
            "user",
            ("place",),
            None,
            epsilon=4.0,
            delta=1e-5,
        )
    )
