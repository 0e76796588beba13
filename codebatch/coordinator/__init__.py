"""The coordinator: planning, event loops over real processes, merging and progress."""
