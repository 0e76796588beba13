"""The worker process and the built-in tasks. The coordinator never imports this package."""
