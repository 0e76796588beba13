"""Gaps: valid code that a grammar does not support. Before parsing, code that the grammar supports replaces it."""
