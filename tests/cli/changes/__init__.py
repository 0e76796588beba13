"""Tests of the commands `changes` and `apply`."""
