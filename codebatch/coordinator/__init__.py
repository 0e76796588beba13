"""Runs the engine over real processes: planning, launching, the loop, merging, progress."""
