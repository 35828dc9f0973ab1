"""All commands, registered by importing their modules. The order is that of ``--help``."""

from topsecret.cli import top  # isort: skip
from topsecret.cli import sql  # isort: skip
from topsecret.cli import privacy  # isort: skip
from topsecret.cli import schedule  # isort: skip
from topsecret.cli import series  # isort: skip
from topsecret.cli import plan  # isort: skip
from topsecret.cli import demo  # isort: skip
from topsecret.cli import verify  # isort: skip
from topsecret.cli import account  # isort: skip
from topsecret.cli import budget  # isort: skip
from topsecret.cli import ledger  # isort: skip
from topsecret.cli import pate  # isort: skip
from topsecret.cli import rank  # isort: skip
from topsecret.cli import serve  # isort: skip
from topsecret.cli import service  # isort: skip
from topsecret.cli import reproduce  # isort: skip
from topsecret.cli import doctor  # isort: skip
from topsecret.cli.app import app

__all__ = [
    "account",
    "app",
    "budget",
    "demo",
    "doctor",
    "ledger",
    "pate",
    "plan",
    "privacy",
    "rank",
    "reproduce",
    "schedule",
    "series",
    "serve",
    "service",
    "sql",
    "top",
    "verify",
]
