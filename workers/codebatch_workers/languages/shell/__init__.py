"""Shells."""
