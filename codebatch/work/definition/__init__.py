"""Task lists as people write them: reading, checks, and conversion into commands."""
