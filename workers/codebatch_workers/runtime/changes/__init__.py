"""Checks of the changes that tasks propose."""
