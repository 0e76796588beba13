"""Comparison of two batches. Callers read the records and texts; most modules here only compare them, without I/O."""
