"""Exports of batches and of comparisons."""
