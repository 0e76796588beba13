"""To which files of a snapshot an import leads: a pure function of its paths and of configuration files among them.

Each language has its rules (the modules beside this one). What they and the tree's own configuration do not settle is
found by likeness, and the resolution says how sure that is:

    exact      the language's rule names this file and no other (a package: these files)
    file       one file of the snapshot fits
    name       several fit
    external   none fits

No order of paths changes an answer; no command is run and nothing outside of the snapshot is read. What a configuration
file says is believed, but it cannot lead out of the tree, and one that is too large or unsound says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Protocol, cast

from codebatch_workers.resolution.tree import EXTERNAL, PathTree, Resolved, is_secondary, parent

if TYPE_CHECKING:
    from codebatch_workers.resolution.jvm import JvmDefinitions
    from codebatch_workers.resolution.modules import Declared
    from codebatch_workers.resolution.python import PythonImports
    from codebatch_workers.resolution.rust import RustImports
    from codebatch_workers.resolution.script import ScriptFiles

# Whose files the classes of a language may be in.
_JVM = {"java": (".java", ".kt", ".scala"), "kotlin": (".kt", ".java"), "scala": (".scala", ".java")}
# Languages that have the rule of another.
_LIKE = {"cpp": "c", "tsx": "typescript", "zsh": "bash"}


class _Imports(Protocol):
    def resolve(self, path: str, target: str) -> Resolved: ...


class Resolver:
    """Resolves the imports of one snapshot. It is fastest in path order, for it keeps the answers of a directory."""

    def __init__(
        self,
        paths: Iterable[str],
        read: Callable[[str], bytes | None],
        definitions: Callable[[], Mapping[str, JvmDefinitions]] = dict,
        modules: Callable[[], Mapping[str, Sequence[Declared]]] = dict,
    ) -> None:
        """`paths` are those of all files; `read` gives the content of one, None where it cannot be had.

        `definitions` gives what files of Java, Kotlin and Scala define; it is asked once, if any of them imports.
        """
        self._tree = PathTree(paths, read)
        self._definitions = cache(definitions)
        self._modules = cache(modules)
        self._rules: dict[str, _Imports | None] = {}
        self._directory = ""
        self._known: dict[tuple[str, str, str, bool, bool], Resolved] = {}
        self._path = ""
        self._is_secondary = False

    def resolve(self, path: str, language: str, target: str, *, is_module: bool = False) -> Resolved:
        """Where an import of `target`, as its edge has it, leads from the file `path` in `language`."""
        like = _LIKE.get(language, language)
        if like not in self._rules:
            self._rules[like] = self._rule_of(like)
        rule = self._rules[like]
        if rule is None:
            return EXTERNAL
        directory = parent(path)
        if directory != self._directory:
            self._directory = directory
            self._known.clear()
        if path != self._path:
            self._path, self._is_secondary = path, is_secondary(path)
        # In Rust, in Scala and for a compiler of C it matters which file of the directory asks.
        asking = path if language in ("c", "cpp", "rust", "scala") else ""
        key = (language, target, asking, self._is_secondary, is_module)
        found = self._known.get(key)
        if found is None:
            if is_module and language in ("python", "rust"):
                found = cast("PythonImports | RustImports", rule).resolve_module(path, target)
            else:
                found = rule.resolve(path, target)
            self._known[key] = found
        return found

    @cached_property
    def _scripts(self) -> ScriptFiles:
        from codebatch_workers.resolution.script import ScriptFiles

        return ScriptFiles(self._tree)

    def _rule_of(self, language: str) -> _Imports | None:
        """The rule of a language, imported when there is a file of it: all of them take 6 ms."""
        tree = self._tree
        if language == "python":
            from codebatch_workers.resolution.python import PythonImports

            return PythonImports(tree)
        if language == "c":
            from codebatch_workers.resolution.include import CIncludes

            return CIncludes(tree)
        if language in ("javascript", "typescript"):
            from codebatch_workers.resolution.script import ScriptImports

            return ScriptImports(self._scripts, is_typed=language == "typescript")
        if language in _JVM:
            from codebatch_workers.resolution.jvm import JvmImports

            return JvmImports(tree, _JVM[language], self._definitions())
        if language == "go":
            from codebatch_workers.resolution.go import GoImports

            return GoImports(tree)
        if language == "rust":
            from codebatch_workers.resolution.rust import RustImports

            return RustImports(tree, self._modules())
        return self._required(language)

    def _required(self, language: str) -> _Imports | None:
        """The rule of a language whose files load others by name."""
        from codebatch_workers.resolution.required import LuaRequires, PhpImports, RubyRequires, ShellSources

        rules: dict[str, Callable[[PathTree], _Imports]] = {
            "bash": ShellSources,
            "lua": LuaRequires,
            "php": PhpImports,
            "ruby": RubyRequires,
        }
        return rules[language](self._tree) if language in rules else None
