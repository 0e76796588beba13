"""Processes, forks and clocks of this machine."""
