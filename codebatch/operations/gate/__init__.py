"""The quality gate, the choice of its base, and baselines."""
