"""Queries of one batch."""
