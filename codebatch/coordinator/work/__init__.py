"""The coordinator of a batch of commands."""
