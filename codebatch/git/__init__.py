"""Queries of git repositories. Neither files of the tree nor settings of the user affect the results."""
