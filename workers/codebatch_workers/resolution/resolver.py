"""Resolution of imports to files of a snapshot.

The result depends only on the paths of the snapshot and on its configuration files. Each language has its own rule, in
a module of this package. If neither the rule nor the configuration decides, files with similar paths are chosen. The
value `resolution` of a result states how certain it is:

    exact      the language's rule determines this file and no other (or the files of one package)
    file       one file of the snapshot fits
    name       several files fit
    external   no file fits

The order of paths is irrelevant. No command is run, and nothing outside the snapshot is read. The content of
configuration files is trusted, but a path in them cannot lead outside the tree. Files that are too large or invalid are
ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Protocol, cast

from codebatch_workers.resolution.c_includes import CIncludes
from codebatch_workers.resolution.go import GoImports
from codebatch_workers.resolution.javascript import JavaScriptFiles, JavaScriptImports
from codebatch_workers.resolution.jvm import JvmDefinitions, JvmImports
from codebatch_workers.resolution.modules import DeclaredModule
from codebatch_workers.resolution.python import PythonImports
from codebatch_workers.resolution.requires_and_includes import LuaRequires, PhpImports, RubyRequires, ShellSources
from codebatch_workers.resolution.rust import RustImports
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    PathTree,
    ResolvedImport,
    is_test_or_example,
    parent_directory,
)

# The extensions of files that can contain a class, by the language of the importing file.
_JVM_ENDINGS = {"java": (".java", ".kt", ".scala"), "kotlin": (".kt", ".java"), "scala": (".scala", ".java")}
# Languages that use the rule of another language.
_RULE_LANGUAGE = {"cpp": "c", "tsx": "typescript", "zsh": "bash"}


class _ImportResolver(Protocol):
    def resolve(self, path: str, target: str) -> ResolvedImport: ...


class ProjectResolver:
    """The resolver of one snapshot.

    It caches the results for the directory of the last importing file. So it is fastest if files are resolved in path
    order.
    """

    def __init__(
        self,
        tree: PathTree,
        definitions: Callable[[], Mapping[str, JvmDefinitions]] = dict,
        modules: Callable[[], Mapping[str, Sequence[DeclaredModule]]] = dict,
    ) -> None:
        """Resolve imports in the files of `tree`.

        `definitions` returns the definitions in Java, Kotlin and Scala files, by path. It is called when an import in
        such a file is first resolved, and only once. In the same way, `modules` returns the modules that Rust files
        declare.
        """
        self._tree = tree
        self._definitions = cache(definitions)
        self._modules = cache(modules)
        self._resolver_by_language: dict[str, _ImportResolver | None] = {}
        self._directory = ""
        self._cached_results: dict[tuple[str, str, str, bool, bool], ResolvedImport] = {}
        self._path = ""
        self._is_secondary = False

    def resolve(self, path: str, language: str, target: str, *, is_module: bool = False) -> ResolvedImport:
        """Resolve `target`, the target of an import edge in the file `path`.

        `is_module` is true if it certainly is a module.
        """
        rule_language = _RULE_LANGUAGE.get(language, language)
        if rule_language not in self._resolver_by_language:
            self._resolver_by_language[rule_language] = self._language_rule(rule_language)
        rule = self._resolver_by_language[rule_language]
        if rule is None:
            return EXTERNAL_IMPORT
        directory = parent_directory(path)
        if directory != self._directory:
            self._directory = directory
            self._cached_results.clear()
        if path != self._path:
            self._path, self._is_secondary = path, is_test_or_example(path)
        # In these languages, the result depends on the importing file, not only on its directory.
        asking_path = path if language in ("c", "cpp", "rust", "scala") else ""
        key = (language, target, asking_path, self._is_secondary, is_module)
        resolved = self._cached_results.get(key)
        if resolved is None:
            if is_module and language in ("python", "rust"):
                resolved = cast("PythonImports | RustImports", rule).resolve_module(path, target)
            else:
                resolved = rule.resolve(path, target)
            self._cached_results[key] = resolved
        return resolved

    def erases_imports(self, path: str) -> bool:
        """Return whether the compiler of a TypeScript file erases imports whose names are used only as types."""
        return self._javascript_files.configurations.nearest_options(parent_directory(path)).erases_imports

    @cached_property
    def _javascript_files(self) -> JavaScriptFiles:
        return JavaScriptFiles(self._tree)

    @cached_property
    def rust_imports(self) -> RustImports:
        """The rule for imports in Rust."""
        return RustImports(self._tree, self._modules())

    def _language_rule(self, language: str) -> _ImportResolver | None:
        """Return the rule that resolves the imports of a language, or None if there is none."""
        tree = self._tree
        if language == "python":
            return PythonImports(tree)
        if language == "c":
            return CIncludes(tree)
        if language in ("javascript", "typescript"):
            return JavaScriptImports(self._javascript_files, is_typed=language == "typescript")
        if language in _JVM_ENDINGS:
            return JvmImports(tree, _JVM_ENDINGS[language], self._definitions())
        if language == "go":
            return GoImports(tree)
        if language == "rust":
            return self.rust_imports
        return self._rule_by_name(language)

    def _rule_by_name(self, language: str) -> _ImportResolver | None:
        """Return the rule of a language whose imports name files by path, or None for any other language."""
        rules: dict[str, Callable[[PathTree], _ImportResolver]] = {
            "bash": ShellSources,
            "lua": LuaRequires,
            "php": PhpImports,
            "ruby": RubyRequires,
        }
        return rules[language](self._tree) if language in rules else None
