"""Answers that are computed from records."""
