"""The state of a batch, derived from what is on disk."""
