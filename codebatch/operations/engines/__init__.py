"""Use cases of engines: a run whose shards an engine executes, and the check of an engine."""
