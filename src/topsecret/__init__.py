"""Differentially private top-k for the data people already have."""

__version__ = "0.1.0.dev0"
