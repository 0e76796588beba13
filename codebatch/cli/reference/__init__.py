"""Commands that describe the command line."""
