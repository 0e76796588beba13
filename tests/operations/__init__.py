"""The use cases, without the command line."""
