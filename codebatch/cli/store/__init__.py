"""Commands for the store."""
