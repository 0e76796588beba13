"""Comparison of two batches. Pure decisions about records and texts that callers read."""
