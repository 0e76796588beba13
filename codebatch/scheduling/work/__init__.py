"""The scheduler of a work batch: the order in which commands run."""
