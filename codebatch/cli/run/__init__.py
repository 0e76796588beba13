"""Commands that run analyses or manage their batches."""
