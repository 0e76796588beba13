"""Decisions: (state, event) -> actions. Imports nothing but `codebatch.model`, so a simulator can drive all of it."""
