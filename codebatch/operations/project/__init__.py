"""The project: its configuration, its stores, and its snapshot."""
