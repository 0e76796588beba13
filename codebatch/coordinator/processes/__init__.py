"""Worker processes, their channels, signals and limits."""
