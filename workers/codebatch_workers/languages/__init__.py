"""Languages: one package for each family of languages, with the rules that differ from language to language."""
