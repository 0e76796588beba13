"""Diagnosis of stores, verification of results, trials of rules and tasks."""
