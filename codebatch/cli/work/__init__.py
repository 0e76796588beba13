"""Commands for task lists."""
