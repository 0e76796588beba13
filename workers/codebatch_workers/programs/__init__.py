"""Programs that tasks call: the files that they get, and their reports."""
