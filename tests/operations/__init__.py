"""Tests of the use cases, without the command line."""
