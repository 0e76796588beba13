"""Read-only queries of batches: records that pass filters, the records of one file, and summaries."""
