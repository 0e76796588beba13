"""The index of a batch, which maps search terms to frames. It is derived data and may be deleted (SPEC.md "Index")."""
