"""Lint rules."""
