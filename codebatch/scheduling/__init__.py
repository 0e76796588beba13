"""Scheduling decisions as functions (state, event) -> actions, without I/O.

The package imports only `codebatch.model`, so a simulator can drive all of it.
"""
