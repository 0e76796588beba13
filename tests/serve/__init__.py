"""Tests of the live page's server."""
