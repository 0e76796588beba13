"""The git history of a project, and its cache."""
