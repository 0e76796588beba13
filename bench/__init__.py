"""Benchmarks of codebatch and its peers: pairs that take turns in one run, reported as ratios (README.md)."""
