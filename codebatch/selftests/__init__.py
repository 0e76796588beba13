"""Gates: promises of SPEC.md that a store, a batch and this program are held against, each with a name."""
