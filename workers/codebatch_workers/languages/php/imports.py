"""PHP: included files are found by path, classes by the autoloading that composer.json configures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from codebatch_workers.resolution.documents import as_strings, read_json, table_at
from codebatch_workers.resolution.import_rule import ImportRule
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

_COMPOSER_FILE = "composer.json"
_NAMESPACE_DIRECTORIES_MAX = 64


class PhpImports(ImportRule):
    r"""The resolution of PHP's imports.

    `./a.php` is resolved from the directory of the file (`__DIR__`), `a.php` from directories above, and the name `A\B`
    by autoloading.
    """

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        directory = parent_directory(path)
        if target.endswith((".php", ".inc")) or "/" in target:
            place = relative_to(directory, target)
            if place in self._tree.paths:
                return exact_import(place) if target.startswith(".") else fitting_import([place or ""])
            return EXTERNAL_IMPORT if target.startswith(".") else self._resolve_included(path, target)
        autoloaded = self.autoloaded_file(target)
        if autoloaded is not None:
            return exact_import(autoloaded)
        names = target.strip("\\").split("\\")
        # If no autoloaded prefix begins with the first name of this namespace, the namespace belongs to an external
        # package.
        if self._directories_by_namespace and not any(
            prefix.partition("\\")[0] in ("", names[0]) for prefix in self._directories_by_namespace
        ):
            return EXTERNAL_IMPORT
        for start in range(len(names) - 1):
            candidates = self._tree.files_ending_with(f"{'/'.join(names[start:])}.php")
            if candidates:
                return likely_import(path, candidates)
        return EXTERNAL_IMPORT

    def autoloaded_file(self, name: str) -> str | None:
        """Return the file that autoloading reads to define the class `name`, or None."""
        names = name.strip("\\").split("\\")
        for count in range(len(names) - 1, -1, -1):
            subpath = "/".join(names[count:])
            places = self._directories_by_namespace.get("\\".join(names[:count]), ())
            file = self._tree.first_existing(f"{join_path(place, subpath)}.php" for place in places)
            if file is not None:
                return file
        return None

    def _resolve_included(self, path: str, target: str) -> ResolvedImport:
        """Resolve a relative path that PHP resolves from the directory of the script that was started.

        This script is unknown, so directories above `path` are tried, and then all files whose paths end with `target`.
        """
        for above in iter_ancestors(parent_directory(path)):
            place = relative_to(above, target)
            if place is not None and place in self._tree.paths:
                return fitting_import([place])
        ending = relative_to("", target)
        return (
            likely_import(path, self._tree.files_ending_with(ending)) if ending and "/" in ending else EXTERNAL_IMPORT
        )

    @cached_property
    def _directories_by_namespace(self) -> Mapping[str, Sequence[str]]:
        """The directories that composer.json files assign to each namespace (PSR-4), by namespace."""
        directories: dict[str, list[str]] = {}
        for file in self._tree.files_named(_COMPOSER_FILE):
            document = read_json(self._tree, file)
            for section in ("autoload", "autoload-dev"):
                for prefix, to in table_at(document, section, "psr-4").items():
                    places = [
                        relative_to(parent_directory(file), directory)
                        for directory in ([to] if isinstance(to, str) else as_strings(to))
                    ]
                    known = directories.setdefault(prefix.strip("\\"), [])
                    known.extend(place for place in places[:_NAMESPACE_DIRECTORIES_MAX] if place is not None)
        return {prefix: places[:_NAMESPACE_DIRECTORIES_MAX] for prefix, places in directories.items()}


IMPORTS = {"php": PhpImports}
