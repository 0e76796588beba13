"""A report: one HTML page of what a batch found, whole in itself. `making.py` makes it, `view.js` shows it."""
