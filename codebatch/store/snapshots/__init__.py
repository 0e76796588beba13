"""Snapshots of source trees."""
