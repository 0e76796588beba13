"""Dependencies between tasks, inferred from their texts."""
