"""The papers' tables and figures, and ours: one file each, run by ``make reproduce``."""
