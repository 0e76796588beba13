"""Values of analyses alone: shards, item tables, result keys, imports."""
