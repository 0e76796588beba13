"""The index of a batch: which frames hold what is asked for. Derived and deletable (SPEC.md "Index")."""
