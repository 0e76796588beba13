"""Sources of the records of a batch."""
