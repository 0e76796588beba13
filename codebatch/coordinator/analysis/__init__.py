"""The coordinator of an analysis."""
