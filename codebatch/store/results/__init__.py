"""Results of analyses: outcomes, shard files, merged outputs."""
