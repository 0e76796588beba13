"""CSS, HTML and Markdown."""
