"""Languages: one package for each family of languages.

A package has these modules. A missing module means that the family does not support this.

- `symbols`: `SYMBOLS` maps a language to the facts about its definitions, imports and names.
- `duplicates`: `DUPLICATES` maps a language to the code that is not searched for duplicates.
- `errors`: `ERRORS` maps a language to the facts about the errors in its files.
- `imports`: `IMPORT_RULES` maps a language to its rule for imports.
- `implicit`: `IMPLICIT_RULES` maps a language to its rule for names that are used without an import.
- `uses`: `USES` maps a language to the way in which the uses of names are resolved.

Further modules are parts of these. No package outside of this one imports the package of a family.
"""
