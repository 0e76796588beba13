"""Terminal output: tables, colours, widths, progress."""
