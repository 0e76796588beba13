"""The process that runs commands of work batches, one after another, and outlives its coordinator for each."""
