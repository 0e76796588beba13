"""Queries of git repositories. Neither the tree nor the user's settings affect the results."""
