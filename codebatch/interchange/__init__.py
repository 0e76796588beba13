"""Formats of other programs, one module for each: exports of findings and definitions, and readers of reports."""
