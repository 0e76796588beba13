"""Signal: the share of findings that are worth a maintainer's time (README.md)."""
