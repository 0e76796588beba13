"""Simulations for tests: a disk that loses power, failing calls, processes scheduled by a seed.

And `run_task` for users.
"""
