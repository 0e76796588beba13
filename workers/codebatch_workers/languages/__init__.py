"""Languages: one package for each family of languages.

`FACTS` in a package maps each language to the facts with which questions judge their answers. A package has these
modules. A missing module means that the family does not support this.

- `gaps`: `GAPS` maps a language to the valid code that its grammar does not support.
- `names`: `USED_NAMES` maps a language to the reader of the names that a file uses without an import.
- `imports`: `IMPORT_RULES` maps a language to its rule for imports.
- `implicit`: `IMPLICIT_RULES` maps a language to its rule for names that are used without an import.
- `uses`: `USES` maps a language to the way in which the uses of names are resolved.

Further modules are parts of these. No package outside of this one imports the package of a family.
"""
