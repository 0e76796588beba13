"""Processes of this machine: forks, commands, memory limits, environments."""
