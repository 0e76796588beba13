"""Gaps: valid code that a grammar does not support, and stand-ins that the grammar can parse."""
