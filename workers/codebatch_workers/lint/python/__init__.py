"""Lint of Python: ruff, and filters for its false positives."""
