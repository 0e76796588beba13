"""Change frequency of files and functions, and hotspots."""
