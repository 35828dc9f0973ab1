"""Fixtures that every part's tests may use."""

from postgres import postgres_server, postgres_url
from spark import spark

__all__ = ["postgres_server", "postgres_url", "spark"]
