"""Value types: digest, entry, shard, task, plan, outcome, record. Immutable, without I/O or clocks."""
