"""Conditions on records."""
