"""The worker of an analysis: its channel, its units, and the execution of tasks on files."""
