"""The quality gate, its base, and baselines."""
