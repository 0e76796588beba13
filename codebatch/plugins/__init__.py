"""Tasks: entry points, custom tasks, their settings, and the code and tools that their cache keys cover."""
