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

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from codebatch_workers.resolution.go import GoImports
from codebatch_workers.resolution.include import CIncludes
from codebatch_workers.resolution.jvm import JvmImports
from codebatch_workers.resolution.python import PythonImports
from codebatch_workers.resolution.required import LuaRequires, PhpImports, RubyRequires, ShellSources
from codebatch_workers.resolution.rust import RustImports
from codebatch_workers.resolution.script import ScriptFiles, ScriptImports
from codebatch_workers.resolution.tree import EXTERNAL, Resolved, Tree, parent


class _Imports(Protocol):
    def resolve(self, path: str, target: str) -> Resolved: ...


class Resolver:
    """Resolves the imports of one snapshot. It is fastest in path order, for it keeps the answers of a directory."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], bytes | None]) -> None:
        """`paths` are those of all files; `read` gives the content of one, None where it cannot be had."""
        tree = Tree(paths, read)
        scripts = ScriptFiles(tree)
        typed = ScriptImports(scripts, is_typed=True)
        includes, shell = CIncludes(tree), ShellSources(tree)
        self._rules: Mapping[str, _Imports] = {
            "bash": shell,
            "c": includes,
            "cpp": includes,
            "go": GoImports(tree),
            "java": JvmImports(tree, (".java", ".kt", ".scala")),
            "javascript": ScriptImports(scripts, is_typed=False),
            "kotlin": JvmImports(tree, (".kt", ".java")),
            "lua": LuaRequires(tree),
            "php": PhpImports(tree),
            "python": PythonImports(tree),
            "ruby": RubyRequires(tree),
            "rust": RustImports(tree),
            "scala": JvmImports(tree, (".scala", ".java")),
            "tsx": typed,
            "typescript": typed,
            "zsh": shell,
        }
        self._directory = ""
        self._known: dict[tuple[str, str, str, bool], Resolved] = {}

    def resolve(self, path: str, language: str, target: str, *, is_module: bool = False) -> Resolved:
        """Where an import of `target`, as its edge has it, leads from the file `path` in `language`."""
        rule = self._rules.get(language)
        if rule is None:
            return EXTERNAL
        directory = parent(path)
        if directory != self._directory:
            self._directory = directory
            self._known.clear()
        # In Rust and for a compiler of C it matters which file of the directory asks.
        key = (language, target, path if language in ("c", "cpp", "rust") else "", is_module)
        found = self._known.get(key)
        if found is None:
            if is_module and isinstance(rule, PythonImports):
                found = rule.resolve_module(path, target)
            else:
                found = rule.resolve(path, target)
            self._known[key] = found
        return found
