"""Values: digest, entry, shard, task, plan, outcome, record. Frozen; no I/O, no clock."""
