"""Self-tests ("gates" in code and formats) of the invariants of a store, a batch and this program."""
