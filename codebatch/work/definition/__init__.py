"""Task lists as people write them: read, checked, and made into commands."""
