"""Task lists as people write them. This package reads, checks and converts them into commands."""
