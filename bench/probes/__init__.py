"""Programs that a scenario runs and times, or that print their own figures as JSON.

Each is a process of its own for two reasons. Its imports do not add to the memory of the harness, which children
inherit for an instant (measuring.py). And both sides of a pair start equally cold.
"""
