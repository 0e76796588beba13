"""Lint for Python: ruff, and its findings that a reader would not report."""
