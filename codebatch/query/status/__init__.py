"""The state of a batch, derived from its files."""
