"""Languages: one package for each family of languages.

`FACTS` in a package maps each language to the facts with which questions judge their answers. A package has these
modules. A missing module means that the family does not support this.

- `syntax`: `SYNTAX` maps a language to its queries, and to facts about its text, names and comments.
- `patterns`: `PATTERNS` maps a language to facts about patterns and rewrites.
- `gaps`: `GAPS` maps a language to the valid code that its grammar does not support.
- `symbols`: `SYMBOLS` maps a language to the facts about its definitions, imports and names.
- `duplicates`: `DUPLICATES` maps a language to the code that is not searched for duplicates.
- `imports`: `IMPORTS` maps a language to its rule for imports.
- `implicit`: `IMPLICIT` maps a language to its rule for names that are used without an import.
- `uses`: `USES` maps a language to the way in which the uses of names are resolved.

Further modules are parts of these. No package outside of this one imports the package of a family.
"""
