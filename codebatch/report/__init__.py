"""The report: one self-contained HTML page about a batch. `report.py` makes it, `view.js` renders it in the browser."""
