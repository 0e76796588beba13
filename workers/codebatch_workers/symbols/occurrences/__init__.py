"""Occurrences of a name in a file, with their roles."""
