"""Tests of the trees of isolated commands."""
