"""Inference of dependencies between tasks from their texts."""
