"""Messages and frames between processes, and the launch of workers."""
