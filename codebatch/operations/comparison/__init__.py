"""Comparisons of two batches."""
