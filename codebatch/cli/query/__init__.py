"""Commands that query one batch."""
