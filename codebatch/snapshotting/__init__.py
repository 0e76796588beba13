"""Freezing a source tree: which files it has, what they hold, and whether they are still as they were frozen."""
