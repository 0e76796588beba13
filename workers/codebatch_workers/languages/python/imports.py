"""Python: modules below the directories that would be on `sys.path`.

A result is `exact` in two cases: below the directory that contains the importing file's outermost package, and below a
directory that the project's configuration names. Results below other directories are guesses, `file` or `name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

import msgspec

from codebatch_workers.resolution.documents import (
    JsonObject,
    as_mapping,
    as_nonempty_string,
    as_strings,
    read_text,
    read_toml,
    table_at,
)
from codebatch_workers.resolution.import_rule import ImportContext, ImportRule
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    ResolvedImport,
    exact_import,
    fitting_import,
    iter_ancestors,
    join_path,
    likely_import,
    parent_directory,
    relative_to,
)

_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
_PACKAGE_FILES = ("__init__.py", "__init__.pyi")
_MODULE_ENDINGS = (".py", ".pyi", ".pyx")

_SETUP_DIRECTORY = re.compile(
    r"""package_dir\s*=\s*\{\s*["']{2}\s*:\s*["']([^"'\n]+)["']"""
    r"""|find(?:_namespace)?_packages\(\s*(?:where\s*=\s*)?["']([^"'\n]+)["']"""
)
_SETUP_CFG_DIRECTORY = re.compile(r"^where\s*=[ \t]*(\S+)|^package_dir\s*=\s*=[ \t]*(\S+)", re.MULTILINE)

# Top-level modules of the standard library in Python 3.10 to 3.14. A local file can shadow such a module, but an
# installed module cannot.
_STANDARD_MODULE_NAMES = """
abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii
bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall
compression concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime
dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput
fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac
html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale
logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis
nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes
pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data
pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve
shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse
ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile
telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace traceback
tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref
webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo __future__ __main__
"""
STANDARD_MODULES = frozenset(_STANDARD_MODULE_NAMES.split())


_CACHED_RESULTS_MAX = 65_536


class _PythonProject(msgspec.Struct, frozen=True, kw_only=True):
    """The locations that a project configures: root directories, and packages in directories with another name."""

    roots: tuple[str, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()


class PythonImports(ImportRule):
    """The resolution of imports such as `a.b.c` and `..a.b`.

    The last name can be a module, or a member of the module before it.
    """

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._projects: dict[str, _PythonProject] = {}
        self._packages: dict[str, str | None] = {}
        self._cached_module_file = lru_cache(_CACHED_RESULTS_MAX)(self._find_module)
        self._above_packages = lru_cache(_CACHED_RESULTS_MAX)(self._find_above_packages)

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        names = target.lstrip(".")
        level = len(target) - len(names)
        parts = [part for part in names.split(".") if part and part != "*"]
        # In `from a.b import c`, `a.b` must be a module, and `c` can be a name in this module.
        required = len(parts) if names.endswith("*") else len(parts) - 1
        directory = parent_directory(path)
        if level:
            return self._resolve_relative(directory, level, parts, required)
        return self._resolve_absolute(path, parts, max(required, 1)) if parts else EXTERNAL_IMPORT

    def resolve_module(self, path: str, target: str) -> ResolvedImport:
        """Resolve `import a.b.c`, in which `c` is also a module.

        If there is no such module, resolve to the package `a.b`.
        """
        parts = target.split(".")
        resolved = self._resolve_absolute(path, parts, len(parts))
        return (
            resolved
            if resolved.paths
            else fitting_import(self._resolve_absolute(path, parts, max(len(parts) - 1, 1)).paths)
        )

    def _resolve_relative(self, directory: str, level: int, parts: Sequence[str], least: int) -> ResolvedImport:
        for _ in range(level - 1):
            if not directory:
                return EXTERNAL_IMPORT
            directory = parent_directory(directory)
        resolved = self._resolve_below(directory, parts, least)
        return exact_import(self._package_file(directory)) if not resolved.paths and least <= 0 else resolved

    def _resolve_absolute(self, path: str, parts: Sequence[str], least: int) -> ResolvedImport:
        directory = parent_directory(path)
        top = self._above_packages(directory)
        is_standard = parts[0] in STANDARD_MODULES
        if top is not None and not (is_standard and top == directory):
            resolved = self._resolve_below(top, parts, least)
            if resolved.paths:
                return resolved
        if is_standard:
            return self._resolve_below_any([directory] if top == directory else [], parts, least)
        resolved = self._resolve_in_project(directory, parts, least)
        if resolved.paths:
            return resolved
        roots = [
            directory_above
            for directory_above in iter_ancestors(directory)
            if self._package_file(directory_above) is None
        ]
        for root in roots:
            resolved = self._resolve_below_any([root], parts, least)
            if resolved.paths:
                return resolved
        elsewhere = self._resolve_elsewhere(path, parts, least)
        return elsewhere if elsewhere.paths else self._resolve_below_snapshot_root(parts, least)

    def _resolve_elsewhere(self, path: str, parts: Sequence[str], least: int) -> ResolvedImport:
        """Resolve an absolute import below directories that are not above the importing file.

        A name that is not found above the importing file mostly belongs to an installed package. So if only the first
        component matches, only project roots count. Longer matches also count below other directories of the same
        project. `least` is the number of components that must match.
        """
        project_file = self._project_file(parent_directory(path))
        taken_by_module = {}
        for root in self._roots_of_module(parts[0], path):
            module, resolved_count = self._follow_names(root, parts, least)
            is_root = root in self._cached_project(root).roots
            if module is not None and (is_root or (resolved_count > 1 and self._project_file(root) == project_file)):
                taken_by_module[module] = resolved_count
        resolved_modules = [module for module, resolved_count in taken_by_module.items() if resolved_count >= least]
        return likely_import(path, resolved_modules or taken_by_module)

    def _resolve_in_project(self, directory: str, parts: Sequence[str], least: int) -> ResolvedImport:
        project = self._cached_project(directory)
        for name, place in project.packages:
            if name == parts[0]:
                module, resolved_count = self._follow_names(place, parts[1:], least - 1)
                if resolved_count + 1 >= least:
                    return exact_import(module or self._package_file(place))
        for root in project.roots:
            resolved = self._resolve_below(root, parts, least)
            if resolved.paths:
                return resolved
        return EXTERNAL_IMPORT

    def _resolve_below(self, root: str, parts: Sequence[str], least: int) -> ResolvedImport:
        """Resolve a name below the directory `root`: to its module, or else to a module that may define the name.

        The first `least` components must match for an `exact` result.
        """
        module, resolved_count = self._follow_names(root, parts, least)
        if module is None:
            return EXTERNAL_IMPORT
        return exact_import(module) if resolved_count >= least else fitting_import([module])

    def _resolve_below_any(self, roots: Iterable[str], parts: Sequence[str], least: int) -> ResolvedImport:
        """Resolve a name below several directories.

        If it matches completely below one of them, partial matches do not count.
        """
        walks = [walk for root in roots if (walk := self._follow_names(root, parts, least))[0] is not None]
        resolved_modules = [
            module for module, resolved_count in walks if module is not None and resolved_count >= least
        ]
        return fitting_import(resolved_modules or [module for module, _ in walks if module is not None])

    def _resolve_below_snapshot_root(self, parts: Sequence[str], least: int) -> ResolvedImport:
        """Resolve a name below the snapshot's root, if the root itself is a package and the name begins with its name.

        No path contains the root's name. So either pyproject.toml confirms the name, or a second component must match
        too.
        """
        if self._package_file("") is None or len(parts) < 2:
            return EXTERNAL_IMPORT
        module, resolved_count = self._follow_names("", parts[1:], max(least - 1, 1))
        is_evident = resolved_count > 1 or self._root_name == parts[0]
        return fitting_import([module]) if module is not None and is_evident else EXTERNAL_IMPORT

    @cached_property
    def _root_name(self) -> str | None:
        """The import name of the project at the snapshot's root according to its pyproject.toml, or None."""
        document = read_toml(self._tree, "pyproject.toml")
        name = as_nonempty_string(table_at(document, "project").get("name")) or as_nonempty_string(
            table_at(document, "tool", "poetry").get("name")
        )
        return None if name is None else re.sub(r"[-.]+", "_", name)

    def _follow_names(self, directory: str, parts: Sequence[str], least: int) -> tuple[str | None, int]:
        """Follow names from a directory.

        Return the last file that they lead to, and the number of names up to this file. If fewer than `least` names
        lead to a file, return None and 0: a different package of this name must be meant. Names after the first `least`
        can be defined dynamically, as in `six.moves`.
        """
        tree = self._tree
        last, resolved_count = None, 0
        for count, part in enumerate(parts, 1):
            named = join_path(directory, part)
            package = self._package_file(named)
            if package is not None:
                last, resolved_count = package, count
            else:
                module = self._cached_module_file(named)
                if module is not None:
                    return module, count
                if named not in tree.directories:
                    break
            directory = named
        return (last, resolved_count) if resolved_count >= least else (None, 0)

    def _package_file(self, directory: str) -> str | None:
        """Return the `__init__` file that makes a directory a package, or None."""
        if directory not in self._tree.directories:
            return None
        if directory not in self._packages:
            self._packages[directory] = self._tree.first_existing(join_path(directory, name) for name in _PACKAGE_FILES)
        return self._packages[directory]

    def _find_module(self, named: str) -> str | None:
        return self._tree.first_existing(named + ending for ending in _MODULE_ENDINGS)

    def _find_above_packages(self, directory: str) -> str | None:
        """Return the nearest directory, at or above `directory`, that is not a package.

        If all are packages, return None.
        """
        return next((above for above in iter_ancestors(directory) if self._package_file(above) is None), None)

    def _roots_of_module(self, name: str, path: str) -> list[str]:
        """Return the directories that contain a top-level module or package with the name `name`.

        A package without `__init__.py` (PEP 420) counts below the root of a project, and for the files in it, because
        several directories can be parts of one such package. `path` is the importing file.
        """
        is_inside = name in path.split("/")[:-1]
        files = [path for ending in _MODULE_ENDINGS[:2] for path in self._tree.files_ending_with(f"{name}{ending}")]
        packages = [
            directory
            for directory in self._tree.directories_ending_with(name)
            if self._package_file(directory) is not None
            or is_inside
            or (root := parent_directory(directory)) in self._cached_project(root).roots
        ]
        return sorted(
            {root for path in (*files, *packages) if self._package_file(root := parent_directory(path)) is None}
        )

    # -- Projects ------------------------------------------------------------------------------------------------------

    def _project_file(self, directory: str) -> str | None:
        """Return the nearest project file at or above a directory, or None."""
        return self._tree.nearest_file(directory, *_PROJECT_FILES)

    def _cached_project(self, directory: str) -> _PythonProject:
        file = self._project_file(directory)
        if file is None:
            return _PythonProject()
        place = parent_directory(file)
        if place not in self._projects:
            self._projects[place] = self._read_project(place)
        return self._projects[place]

    def _read_project(self, place: str) -> _PythonProject:
        roots, packages = _configured_paths(read_toml(self._tree, join_path(place, "pyproject.toml")))
        for name, pattern in (("setup.py", _SETUP_DIRECTORY), ("setup.cfg", _SETUP_CFG_DIRECTORY)):
            for match in pattern.finditer(read_text(self._tree, join_path(place, name))):
                roots.append(match[1] or match[2])
        source = join_path(place, "src")
        if source in self._tree.directories and self._package_file(source) is None:
            roots.append("src")
        directories = [relative_to(place, root) for root in (*roots, "")]
        return _PythonProject(
            roots=tuple(
                dict.fromkeys(root for root in directories if root is not None and self._package_file(root) is None)
            ),
            packages=tuple(
                (name, directory)
                for name, location in packages
                if (directory := relative_to(place, location)) is not None
            ),
        )


def _configured_paths(document: JsonObject) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the root directories that a pyproject.toml configures, and pairs of package and configured directory."""
    roots: list[str] = []
    packages: list[tuple[str, str]] = []
    setuptools = table_at(document, "tool", "setuptools")
    roots += as_strings(table_at(setuptools, "packages", "find").get("where"))
    for name, place in as_mapping(setuptools.get("package-dir")).items():
        if as_nonempty_string(place) is not None:
            if name:
                packages.append((name, str(place)))
            else:
                roots.append(str(place))
    wheel = table_at(document, "tool", "hatch", "build", "targets", "wheel")
    roots += [parent_directory(package.rstrip("/")) for package in as_strings(wheel.get("packages"))]
    included = table_at(document, "tool", "poetry").get("packages")
    for package in included if isinstance(included, list) else ():
        place = as_nonempty_string(as_mapping(package).get("from"))
        if place is not None:
            roots.append(place)
    maturin = as_nonempty_string(table_at(document, "tool", "maturin").get("python-source"))
    roots += [maturin] if maturin is not None else []
    roots += as_strings(table_at(document, "tool", "pytest", "ini_options").get("pythonpath"))
    return roots, packages


IMPORTS = {"python": PythonImports}
