"""A file as tasks see it: its text, its language, its tree, what its grammar does not know, and the notes in it."""
