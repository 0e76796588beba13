"""Comparison of two batches. The modules decide without I/O, on records and texts that their callers have read."""
