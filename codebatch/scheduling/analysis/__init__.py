"""The scheduler of an analysis: assignment of units to workers."""
