"""The secret counts, in memory or kept by an engine."""
