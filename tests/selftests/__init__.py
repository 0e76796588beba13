"""Self-tests of a store, a batch and this installation."""
