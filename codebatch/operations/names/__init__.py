"""Queries that combine the answers about a name."""
