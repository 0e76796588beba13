"""Matching of files, lines and findings of two batches."""
