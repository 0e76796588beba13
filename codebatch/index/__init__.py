"""The index of a batch: which items hold what is asked for. Derived and deletable (SPEC.md "Index")."""
