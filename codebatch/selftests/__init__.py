"""Self-tests of the invariants of a store, a batch and this program. In code and formats, they are called "gates"."""
