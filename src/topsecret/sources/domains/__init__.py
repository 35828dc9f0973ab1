"""Public domains: which items may be named, and their counts kept by an engine."""
