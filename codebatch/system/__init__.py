"""The only code that touches files, clock and processes."""
