"""What lies on disk: packs, snapshots, batches with their leases, outcomes and outputs (SPEC.md "Store layout")."""
