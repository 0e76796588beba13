"""Languages: one package for each family of languages. CONTRIBUTING.md, "A language", describes its modules.

No package outside of this one imports the package of a family.
"""
