"""Functions for tests of custom tasks."""
