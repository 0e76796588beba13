"""Diagnosis and repair of stores, verification of results, and trials of rules and tasks."""
