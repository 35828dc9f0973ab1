"""The answer with its receipt: shown, exported, stored."""
