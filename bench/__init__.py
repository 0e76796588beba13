"""Benchmarks: codebatch against peers, in pairs, in one run, as ratios (README.md)."""
