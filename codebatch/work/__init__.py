"""Work: files that list commands, read, checked, and made into batches."""
