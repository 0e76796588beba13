"""Tasks: entry points, custom tasks, their settings, and the inputs that their cache keys cover."""
