"""Side by side with peers, ratios of medians in one run: ``make bench``."""
