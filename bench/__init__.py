"""Benchmarks: codebatch against peers, in pairs, in one run, as ratios. `python -m bench --help`; README.md explains."""
