"""Values used only by task lists: commands, requests, questions, events."""
