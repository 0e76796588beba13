"""Use cases that execute, resume, repair or import a batch."""
