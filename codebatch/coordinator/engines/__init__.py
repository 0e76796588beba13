"""Execution of the shards of a batch on an engine: a cluster, or a pool of processes (SPEC.md "Engines")."""
