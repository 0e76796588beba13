"""Modules of Python, which are named after their files, and the names that `from module import *` binds."""

from __future__ import annotations

from codebatch.model.analysis.uses import Certainty
from codebatch_workers.languages.python.exports import python_exports
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.uses.chains import name_components
from codebatch_workers.uses.language_rules import ModuleRules


class PythonModules(ModuleRules):
    """The modules and packages of Python."""

    def is_module(self, target: str, importer: str, path: str) -> bool:
        """Return whether a target names the file at a path, not a name in it."""
        components, parts = name_components(target), _module_parts(path)
        dots = len(target) - len(target.lstrip("."))
        if dots:
            return parts == importer.split("/")[:-dots] + [name for name in components if name.strip(".")]
        return parts[-len(components) :] == components

    def package_of(self, path: str) -> str:
        """Return the path of the package that contains a module."""
        return "/".join([*_module_parts(path)[:-1], "__init__.py"])

    def outermost_package(self, target: str, path: str) -> str:
        """Return the path of the package `a` for the import `a.b`, which leads to a path."""
        return "/".join([*_module_parts(path)[: 1 - len(name_components(target)) or None], "__init__.py"])

    def star_visibility(self, module: SourceFile, name: str) -> Certainty:
        """Return how certain it is that `from module import *` binds a name. It is `name` if it does not."""
        if not module.derived(_defines_list):
            return "name" if name.startswith("_") else "exact"
        listed = module.derived(python_exports)
        if listed is None:
            return "inferred"
        return "exact" if name in listed else "name"


def _defines_list(module: SourceFile) -> bool:
    symbols = file_outline(module).symbols
    return any(symbol.qualified == "__all__" and symbol.symbol_type != "import" for symbol in symbols)


def _module_parts(path: str) -> list[str]:
    """Return the components of a module's path. A package is named after its directory."""
    parts = path.removesuffix("i").removesuffix(".py").split("/")
    return parts[:-1] if parts[-1] == "__init__" else parts
