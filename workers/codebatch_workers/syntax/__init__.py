"""A file as tasks get it: its text, language, syntax tree and comments. Also code that its grammar does not support."""
