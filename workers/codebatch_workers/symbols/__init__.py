"""Symbols of a file, metrics of its functions, and its relations to other files."""
