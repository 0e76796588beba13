"""The public classes Store and Batch."""
