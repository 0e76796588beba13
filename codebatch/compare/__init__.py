"""What became of what between two batches: decisions alone, over texts and records that others read."""
