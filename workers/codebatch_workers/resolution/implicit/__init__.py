"""Names that a file uses without an import: the files that define them, by the rules of each language."""
