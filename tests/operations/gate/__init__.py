"""Tests of the quality gate: its base, what CI services state, and baselines."""
