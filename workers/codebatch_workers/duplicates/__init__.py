"""Blocks of code that stand at several places."""
