"""Java, Kotlin and Scala: files of a package use each other's names, and names that are written in full.

A name is looked up in the order of the language: Java and Kotlin look in the package before packages that are imported
with a star, Scala after them. The caller leaves out names that the file defines or imports. Nested types of the file
and of the bases of its classes hide names of the package. A base outside the tree can have nested types that are
unknown, so no name is certain in a file with such a base.

A function or value outside a class is never certain, because a member of the enclosing class or of the receiver of a
lambda hides it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence, Set
from functools import cached_property

import msgspec

from codebatch.model.record import ANONYMOUS, Edge, File, Names, Record, Symbol
from codebatch_workers.languages.jvm.imports import JvmImports
from codebatch_workers.resolution.implicit_rule import ImplicitImport, ImplicitImportRule, found_in, visible_definitions
from codebatch_workers.resolution.import_rule import ImportContext, PackageDefinitions
from codebatch_workers.resolution.tree import FITTING_FILES_MAX

TYPE_SYMBOLS = frozenset({"class", "enum", "interface", "struct", "trait", "type"})
_PLATFORM_PREFIXES = ("java.", "javax.", "kotlin.", "scala.")
_PLATFORM_NESTED_NAMES = """
    AbortPolicy AccessMode Attribute BodyHandler BodyHandlers BodyPublisher BodyPublishers BodySubscriber
    BodySubscribers Builder CallerRunsPolicy Capability Characteristics ConditionObject Config Control Decoder
    DiscardOldestPolicy DiscardPolicy Encoder Entry EnumDesc Exports Field Filter FilterInfo
    ForkJoinWorkerThreadFactory GetField Info JumpableGenerator KeySetView Kind Level Listener Lookup ManagedBlocker
    MapMode Modifier Name OfDouble OfField OfInt OfLong OfMethod OfPrimitive Opens Option Parameters PrivateKeyEntry
    Provides PushPromiseHandler PutField ReadLock Reason Redirect RequestorType Requires ResponseInfo SecretKeyEntry
    Service SimpleEntry SimpleImmutableEntry SinkChannel SourceChannel State Status StreamableGenerator Style
    TrustedCertificateEntry Type UncaughtExceptionHandler Version WriteLock
"""
# Nested types of types of the Java platform that can be bases.
_PLATFORM_NESTED_TYPES = frozenset(_PLATFORM_NESTED_NAMES.split())
_TYPE_NAME = re.compile(r"[A-Z]\w*\Z", re.ASCII)
_PathsByName = Mapping[str, set[str]]


class _FileTypes(msgspec.Struct):
    """The types of a file that matter to names in other files.

    `bases` are the bases of all its classes: names as imported, otherwise as written. `stars` are the packages that it
    imports with a star.
    """

    package: str
    language: str
    nested: frozenset[str]
    bases: tuple[str, ...] = ()
    stars: tuple[str, ...] = ()


class _InheritedTypes(msgspec.Struct, frozen=True):
    """The nested types that the classes of a file inherit.

    If `is_open` is set, a base outside the tree can have any nested types. `has_platform` is set if a base is of the
    platform.
    """

    names: frozenset[str] = frozenset()
    is_open: bool = False
    has_platform: bool = False

    def can_hide(self, name: str) -> bool:
        """Return whether a base outside the tree can have a nested type with this name."""
        return self.is_open or (self.has_platform and name in _PLATFORM_NESTED_TYPES)


class JvmPackageNames(ImplicitImportRule):
    """The names that the files of each package define at their outermost level."""

    relations_text = '"edge_type":"i'  # Both `imports` and `inherits` begin with this letter.

    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._definitions: dict[str, PackageDefinitions] = {}
        self._files: dict[str, _FileTypes] = {}
        self._types: dict[str, set[str]] = {}
        self._values: dict[str, set[str]] = {}
        # Full names of types in Java files that are visible only in their package, with the files.
        self._internal: set[tuple[str, str]] = set()
        # Names of nested types. In Java and Scala, an anonymous class that inherits one hides names only in its body.
        self._inheritable: set[str] = set(_PLATFORM_NESTED_TYPES)
        self._inherited: dict[str, _InheritedTypes] = {}

    @property
    def definitions(self) -> Mapping[str, PackageDefinitions]:
        return self._definitions

    @classmethod
    def definitions_key(cls, file: File, records: Sequence[Record]) -> Hashable:
        is_package_object = isinstance(file.path, str) and file.path.endswith("/package.scala")
        visible = visible_definitions(
            record
            for record in records
            if isinstance(record, Symbol)
            and record.symbol_type != "import"
            and (not record.scope or record.symbol_type in TYPE_SYMBOLS or is_package_object)
        )
        edges = [record for record in records if isinstance(record, Edge)]
        bases, stars = bases_and_stars(edges, with_anonymous=file.lang == "kotlin")
        return visible, bases, stars if bases else (), file.parse == "ok"

    @cached_property
    def _imports(self) -> JvmImports:
        return JvmImports(self._context, (".java",), self._definitions)

    @cached_property
    def _defined_names(self) -> frozenset[str]:
        """All names in the tables, without packages. Most names that a file uses are not among them."""
        return frozenset(full.rpartition(".")[2] for full in (*self._types, *self._values))

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        """Add the symbols of a file. Private names of Kotlin files are visible only in their file."""
        packages: list[str] = []
        defined: list[Symbol] = []
        nested: list[str] = []
        for symbol in symbols:
            if not symbol.scope:
                if symbol.symbol_type == "module":
                    packages.append(symbol.qualified)
                elif symbol.symbol_type != "import":
                    defined.append(symbol)
            elif symbol.symbol_type in TYPE_SYMBOLS:
                nested.append(symbol.name)
                if symbol.visibility != "private" and not path.endswith("/package.scala"):
                    self._inheritable.add(symbol.name)
        package = ".".join(packages if language == "scala" else packages[:1])
        self._definitions[path] = PackageDefinitions(package, frozenset(symbol.name for symbol in defined), is_partial)
        self._files[path] = _FileTypes(package, language, frozenset(nested))
        if path.endswith((".kts", ".sc")):
            return  # Other files cannot use the names of a script.
        if path.endswith("/package.scala"):
            # A package object has the name of its directory. It is not a type. Its members are names of the package.
            package_object = path.split("/")[-2]
            members = [symbol for symbol in symbols if symbol.scope == package_object]
            defined = [*members, *(symbol for symbol in defined if symbol.name != package_object)]
        self._add_names(path, language, f"{package}." if package else "", defined)

    def _add_names(self, path: str, language: str, prefix: str, symbols: Sequence[Symbol]) -> None:
        for symbol in symbols:
            if language != "kotlin" or symbol.visibility != "private":
                table = self._types if symbol.symbol_type in TYPE_SYMBOLS else self._values
                table.setdefault(prefix + symbol.qualified, set()).add(path)
                if language == "java" and symbol.visibility != "public":
                    self._internal.add((prefix + symbol.qualified, path))

    def add_relations(self, path: str, edges: Sequence[Edge]) -> None:
        """Add the imports and bases of a file. Its definitions were added before."""
        file = self._files.get(path)
        if file is not None:
            file.bases, file.stars = bases_and_stars(edges, with_anonymous=file.language == "kotlin")

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        """See `ImplicitImportRule.resolve`. A name that begins with a dot is a member or an extension function."""
        if name.rpartition(".")[2] not in self._defined_names:
            return None
        if name.startswith("."):
            called = self._find(path, language, self._values, name[1:])
            return None if called is None else ImplicitImport("name", called.paths, name[1:])
        inherited = self._inherited_types(path)
        if name in inherited.names or name in self._files[path].nested:
            return None
        types = self._find(path, language, self._types, name)
        values = None if language == "java" else self._find(path, language, self._values, name)
        if types is not None and values is None:
            can_be_hidden = inherited.can_hide(name) or (language != "kotlin" and name in self._inheritable)
            is_certain = types.resolution == "exact" and ("." in name or not can_be_hidden)
            return found_in(types.paths, name, is_certain=is_certain)
        if values is not None:
            paths = {*values.paths, *(() if types is None else types.paths)}
            return found_in(tuple(sorted(paths)), name, is_certain=False)
        return None

    def select_used(self, path: str, target: str, paths: Sequence[str], names: Names) -> Sequence[str]:
        """Return the files of a package, imported with a star, whose types the file `path` uses.

        Values, implicit definitions of Scala, and types whose names look like those of values can be used unnoticed.
        """
        package = target.removesuffix(".*").removesuffix("._")
        if package == target or self._definitions[path].is_partial:
            return paths
        used = {name.partition(".")[0] for name in names.names}
        return [file for file in paths if not self._is_unused(file, package, used)]

    def _is_unused(self, file: str, package: str, used: Set[str]) -> bool:
        known = self._definitions.get(file)
        if known is None or known.is_partial or not f".{known.package}".endswith(f".{package}"):
            return False
        has_only_types = not file.endswith(".scala") and all(
            _TYPE_NAME.match(name) and file not in self._values.get(f"{known.package}.{name}", ())
            for name in known.names
        )
        return has_only_types and bool(known.names) and used.isdisjoint(known.names)

    # -- Names ---------------------------------------------------------------------------------------------------------

    def _find(self, path: str, language: str, table: _PathsByName, name: str) -> ImplicitImport | None:
        """Return the files that define a name, for a use in the file `path`.

        A name with dots is written in full. In Scala, it can also begin in an enclosing package.
        """
        file = self._files[path]
        if language == "scala":
            found = self._find_in_stars(path, file, table, name)
            parts = file.package.split(".") if file.package else []
            for count in range(len(parts), 0, -1):
                found = found or self._find_in_package(path, table, ".".join(parts[:count]), name)
            if found is not None:
                # Unless all stars are known, a name from one of them comes before the package.
                return found_in(found.paths, name, is_certain=found.resolution == "exact" and not file.stars)
            return self._find_elsewhere(path, table, [name], name) if "." in name else None
        if "." in name:
            return self._find_elsewhere(path, table, [name], name)
        return self._find_in_package(path, table, file.package, name) or self._find_in_stars(path, file, table, name)

    def _find_in_package(self, path: str, table: _PathsByName, package: str, name: str) -> ImplicitImport | None:
        files = table.get(f"{package}.{name}" if package else name, set())
        if not package:
            files = {file for file in files if self._imports.is_in_module(path, file)}
        if not files or path in files:
            return None
        chosen = self._imports.nearest_definitions(path, sorted(files))
        if not chosen.paths:
            # Only tests define the name.
            return found_in(tuple(sorted(files))[:FITTING_FILES_MAX], name, is_certain=False)
        # Another module can have a package of the same name without being visible.
        is_certain = chosen.resolution == "exact" and self._imports.is_in_module(path, chosen.paths[0])
        return found_in(chosen.paths, name, is_certain=is_certain)

    def _find_in_stars(self, path: str, file: _FileTypes, table: _PathsByName, name: str) -> ImplicitImport | None:
        return self._find_elsewhere(path, table, [f"{star}.{name}" for star in file.stars], name)

    def _find_elsewhere(
        self, path: str, table: _PathsByName, full_names: Sequence[str], name: str
    ) -> ImplicitImport | None:
        """Return the files that define one of the full names. They can be in other packages, so they must be public."""
        files = {file for full in full_names for file in table.get(full, ()) if (full, file) not in self._internal}
        if not files or path in files:
            return None
        chosen = self._imports.nearest_definitions(path, sorted(files))
        return found_in(chosen.paths, name, is_certain=chosen.resolution == "exact")

    # -- Inherited types -----------------------------------------------------------------------------------------------

    def _inherited_types(self, path: str) -> _InheritedTypes:
        """Return the nested types that the classes of a file inherit. A cycle of bases adds nothing."""
        known = self._inherited.get(path)
        if known is not None:
            return known
        self._inherited[path] = _InheritedTypes()
        file = self._files[path]
        names: set[str] = set()
        is_open = has_platform = False
        for base in file.bases:
            outermost = base.partition(".")[0]
            if outermost in self._definitions[path].names or outermost in file.nested:
                continue
            paths = self._base_files(path, file, base)
            is_platform = not paths and self._is_platform_base(file, base)
            has_platform |= is_platform
            is_open |= not paths and not is_platform
            for base_path in paths:
                inherited = self._inherited_types(base_path)
                names |= self._files[base_path].nested | inherited.names
                is_open |= inherited.is_open
                has_platform |= inherited.has_platform
        result = self._inherited[path] = _InheritedTypes(frozenset(names), is_open, has_platform)
        return result

    def _base_files(self, path: str, file: _FileTypes, base: str) -> Sequence[str]:
        """Return the files that define a base. A part of its name can be that of a nested type."""
        parts = base.split(".")
        for count in range(len(parts), 0, -1):
            found = self._find(path, file.language, self._types, ".".join(parts[:count]))
            if found is not None:
                return found.paths
        return ()

    def _is_platform_base(self, file: _FileTypes, base: str) -> bool:
        """Return whether a base that no file defines is certainly of the platform. Its nested types are known.

        In Kotlin and Scala, a name can be that of an import with another name.
        """
        if "." in base or file.language != "java":
            return base.startswith(_PLATFORM_PREFIXES)
        return all(f"{star}.".startswith(_PLATFORM_PREFIXES) for star in file.stars)


def bases_and_stars(edges: Sequence[Edge], *, with_anonymous: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the bases of all classes of a file, and the packages that it imports with a star.

    A base that the file imports has the full name. Other bases are as written.
    """
    if not edges:
        return (), ()
    inherits = [edge for edge in edges if edge.edge_type == "inherits"]
    written = {edge.target for edge in inherits if with_anonymous or not edge.source.endswith(ANONYMOUS)}
    targets = [edge.target for edge in edges if edge.edge_type == "imports"]
    stars = tuple(sorted({target[:-2] for target in targets if target.endswith((".*", "._"))}))
    firsts = {name.partition(".")[0] for name in written}
    imported = {last: target for target in targets if (last := target.rpartition(".")[2]) in firsts}
    bases = set()
    for name in written:
        first, dot, rest = name.partition(".")
        bases.add(f"{imported.get(first, first)}{dot}{rest}")
    return tuple(sorted(bases)), stars


IMPLICIT = {"java": JvmPackageNames, "kotlin": JvmPackageNames, "scala": JvmPackageNames}
