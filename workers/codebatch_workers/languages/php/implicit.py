r"""PHP: files use classes of their namespace, and names written in full. A function can also be a global one.

Names of classes and functions are compared without case. An imported class is found by its name, wherever its file is.
If several files define a name, autoloading decides (PSR-4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codebatch.model.record import Edge, Symbol
from codebatch_workers.languages.php.imports import PhpImports
from codebatch_workers.resolution.implicit_rule import ImplicitImport, ImplicitImportRule
from codebatch_workers.resolution.import_rule import ImportContext
from codebatch_workers.resolution.tree import ResolvedImport, fitting_import

_CLASSES = frozenset({"class", "enum", "interface", "trait"})
_FUNCTION_MARK = "()"


class PhpNames(ImplicitImportRule):
    """The classes and functions of all PHP files, by name in lower case, with the namespace."""

    definitions_text = '"scope":""'

    def __init__(self, context: ImportContext) -> None:
        self._autoloading = context.shared(PhpImports)
        self._classes: dict[str, set[str]] = {}
        self._functions: dict[str, set[str]] = {}
        self._functions_as_written: set[str] = set()
        self._namespaces: dict[str, tuple[str, ...]] = {}
        self._aliases: dict[str, dict[str, int]] = {}
        self._known_files: set[str] = set()

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        namespace, namespaces = "", list[str]()
        for symbol in symbols:
            if symbol.symbol_type == "namespace":
                namespace = symbol.name
                namespaces.append(namespace)
            elif symbol.symbol_type in _CLASSES and not symbol.scope:
                self._classes.setdefault(_join(namespace, symbol.name).lower(), set()).add(path)
                if not is_partial:
                    self._known_files.add(path)
            elif symbol.symbol_type == "function" and not symbol.scope:
                name = _join(namespace, symbol.name)
                self._functions_as_written.add(name)
                self._functions.setdefault(name.lower(), set()).add(path)
            elif symbol.symbol_type == "import":
                self._aliases.setdefault(path, {})[symbol.name.lower()] = symbol.line
        self._namespaces[path] = tuple(dict.fromkeys(namespaces)) or ("",)

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        written = name.removesuffix(_FUNCTION_MARK)
        is_function = written != name
        table = self._functions if is_function else self._classes
        qualified = set(self._qualified_names(path, written, imports))
        found = {full: files for full in qualified if (files := table.get(full.lower()))}
        is_certain = len(qualified) == 1
        if not found and is_function and "\\" not in written and (files := table.get(written.lower())):
            # The function of the namespace precedes the global one, which PHP itself or an extension can define, too.
            found, is_certain = {written: files}, False
        if len(found) != 1:
            return None
        full, files = next(iter(found.items()))
        if path in files:
            return None
        resolved = self._choose_file(full, files)
        if resolved.resolution == "exact" and (not is_certain or "\\" not in full):
            # PHP or an extension can define a global name, too. Then the definition of the tree is not used.
            resolved = ResolvedImport("file", resolved.paths)
        return ImplicitImport(resolved.resolution, resolved.paths, written)

    def resolve_import(self, path: str, target: str) -> ResolvedImport | None:
        """Resolve the target of a `use` by the name of the class or function. Return None if no file defines it."""
        files = self._classes.get(target.lower())
        if files:
            return self._choose_file(target, files)
        if "\\" not in target:
            return None
        if target in self._functions_as_written:
            return self._choose_file(target, self._functions[target.lower()])
        resolved = self._autoloading.resolve(path, target)
        # Of files that were chosen by their path, those that are known to define other names are left out.
        if resolved.resolution in ("file", "name") and not self._known_files.isdisjoint(resolved.paths):
            return fitting_import(set(resolved.paths) - self._known_files)
        return resolved

    def _qualified_names(self, path: str, written: str, imports: Sequence[Edge]) -> Iterator[str]:
        """Yield the full names that a name can have. In a file with several namespaces, it can have several."""
        if written.startswith("\\"):
            yield written[1:]
            return
        first, separator, rest = written.partition("\\")
        if separator and first.lower() != "namespace":
            imported = self._imported_names(path, first.lower(), imports)
            if imported:
                yield from (_join(target, rest) for target in imported)
                return
        relative = rest if separator and first.lower() == "namespace" else written
        yield from (_join(namespace, relative) for namespace in self._namespaces.get(path, ("",)))

    def _imported_names(self, path: str, name: str, imports: Sequence[Edge]) -> list[str]:
        """Return the targets of the imports that bind a name, which is in lower case."""
        aliases = self._aliases.get(path, {})
        if name in aliases:
            targets = [edge.target for edge in imports if edge.line == aliases[name]]
            # If a line has several imports, the alias can be that of any.
            return targets if len(targets) == 1 else []
        return [edge.target for edge in imports if _last_name(edge.target).lower() == name]

    def _choose_file(self, name: str, files: set[str]) -> ResolvedImport:
        if len(files) == 1:
            return ResolvedImport("exact", tuple(files))
        autoloaded = self._autoloading.autoloaded_file(name)
        if autoloaded in files:
            return ResolvedImport("exact", (autoloaded,))
        return ResolvedImport("name", tuple(sorted(files)))


def _join(namespace: str, name: str) -> str:
    return f"{namespace}\\{name}" if namespace else name


def _last_name(name: str) -> str:
    return name.rpartition("\\")[2]


IMPLICIT = {"php": PhpNames}
