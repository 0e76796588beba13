"""The coordinator of a work batch."""
