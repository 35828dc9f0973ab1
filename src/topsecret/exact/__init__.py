"""Exact arithmetic: directed rounding, and one order for items of any type."""
