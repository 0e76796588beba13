"""Files of batches of commands: attempts, events, questions, requests."""
