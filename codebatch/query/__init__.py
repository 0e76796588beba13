"""Questions about batches: records with filters, one file's, summaries. Read-only."""
