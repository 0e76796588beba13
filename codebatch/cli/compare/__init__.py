"""Commands that compare batches."""
