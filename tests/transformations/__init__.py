"""Tests of tasks that propose changes of files."""
