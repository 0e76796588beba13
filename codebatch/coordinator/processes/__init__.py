"""Worker processes: channels, signals and limits."""
