"""Answers computed from records."""
