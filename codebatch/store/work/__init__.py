"""Files of work batches: attempts, events, questions and requests."""
