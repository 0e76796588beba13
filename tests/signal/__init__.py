"""Signal: what share of findings is worth a maintainer's time (README.md)."""
