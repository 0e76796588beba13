"""Answers about real code, compared with independent tools."""
