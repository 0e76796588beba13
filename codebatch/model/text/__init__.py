"""Text formats and text helpers: documents that people write, regular expressions, quantities."""
