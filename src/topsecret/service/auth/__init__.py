"""Accounts, credentials, sessions and rate limits."""
