"""The data on disk: packs, snapshots, and batches with their leases, outcomes and outputs (SPEC.md "Store layout")."""
