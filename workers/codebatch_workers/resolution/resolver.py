"""Resolution of imports to files of a snapshot.

The result depends only on the paths of the snapshot and on its configuration files. Each language has its own rule. If
neither the rule nor the configuration decides, files with similar paths are chosen. The value `resolution` of a result
states how certain it is:

    exact      the language's rule determines this file and no other (or the files of one package)
    file       one file of the snapshot fits
    name       several files fit
    external   no file fits

The order of paths is irrelevant. No command is run, and nothing outside the snapshot is read. The content of
configuration files is trusted, but a path in them cannot lead outside the tree. Files that are too large or invalid are
ignored.
"""

from __future__ import annotations

from collections.abc import Callable

from codebatch_workers.resolution.import_rule import ImportContext, ImportRule
from codebatch_workers.resolution.tree import EXTERNAL_IMPORT, ResolvedImport, is_test_or_example, parent_directory


class ProjectResolver:
    """The resolver of one snapshot.

    It caches the results for the directory of the last importing file. So it is fastest if files are resolved in path
    order.
    """

    def __init__(
        self, context: ImportContext, rule_of: Callable[[str], Callable[[ImportContext], ImportRule] | None]
    ) -> None:
        """Resolve imports in the files of the tree of `context`. `rule_of` returns the rule of a language, or None."""
        self._context = context
        self._rule_of = rule_of
        self._rules: dict[str, ImportRule | None] = {}
        self._directory = ""
        self._cached_results: dict[tuple[str, str, str, bool, bool], ResolvedImport] = {}
        self._path = ""
        self._is_secondary = False

    def resolve(self, path: str, language: str, target: str, *, is_module: bool = False) -> ResolvedImport:
        """Resolve `target`, the target of an import edge in the file `path`.

        `is_module` is true if it certainly is a module.
        """
        rule = self._rule(language)
        if rule is None:
            return EXTERNAL_IMPORT
        directory = parent_directory(path)
        if directory != self._directory:
            self._directory = directory
            self._cached_results.clear()
        if path != self._path:
            self._path, self._is_secondary = path, is_test_or_example(path)
        key = (language, target, path if rule.depends_on_file else "", self._is_secondary, is_module)
        resolved = self._cached_results.get(key)
        if resolved is None:
            resolved = rule.resolve_module(path, target) if is_module else rule.resolve(path, target)
            self._cached_results[key] = resolved
        return resolved

    def erases_imports(self, path: str, language: str) -> bool:
        """Return whether the compiler of a file erases imports whose names are used only as types."""
        rule = self._rule(language)
        return rule is not None and rule.erases_imports(path)

    def _rule(self, language: str) -> ImportRule | None:
        if language not in self._rules:
            make = self._rule_of(language)
            self._rules[language] = None if make is None else self._context.shared(make)
        return self._rules[language]
