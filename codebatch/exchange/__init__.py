"""Exports of findings and definitions in formats of other programs, with one module for each format."""
