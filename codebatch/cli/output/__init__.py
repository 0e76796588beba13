"""Text on terminals: tables, colors, widths, progress."""
