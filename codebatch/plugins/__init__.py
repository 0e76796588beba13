"""Tasks: entry points, user tasks, their settings, and what their cache keys cover."""
