"""Values of task lists alone: commands, requests, questions, events."""
