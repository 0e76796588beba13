"""Queries of git repositories. Neither the tree nor the user's settings change the answers."""
