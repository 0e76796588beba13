"""Filters of records."""
