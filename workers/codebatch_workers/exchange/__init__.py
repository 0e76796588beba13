"""Readers of the reports of other programs."""
