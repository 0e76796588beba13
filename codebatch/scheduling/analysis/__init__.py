"""The scheduler of an analysis: which worker does which unit."""
