"""A file as tasks see it: its text, language, syntax tree and comments, and code that its grammar does not support."""
