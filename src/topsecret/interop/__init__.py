"""Mechanisms in the terms of other libraries, each behind an extra of its own."""
