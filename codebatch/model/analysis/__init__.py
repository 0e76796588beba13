"""Values used only by analyses: shard boundaries, item tables, result keys, imports."""
