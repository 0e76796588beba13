"""The process that runs tasks, and the built-in tasks. The coordinator never imports it."""
