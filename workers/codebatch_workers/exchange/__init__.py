"""What other programs report, read from the files that they write."""
