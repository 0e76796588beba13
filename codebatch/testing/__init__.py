"""Twins of the system for tests, ours and users': a disk that loses power, calls that fail, processes run by a seed."""
