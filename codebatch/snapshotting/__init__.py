"""Freezing of a source tree: listing its files, storing their content, and detecting later changes."""
