"""The modules of Rust and their files, according to the declarations in files.

The name of a module is the directory that it would have without `#[path]`: the directory of the crate root, then the
names of the enclosing modules and of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from codebatch_workers.resolution.tree import PathTree, join, parent, relative_to

# The maximum number of passes: a file that a `#[path]` moves can declare other moved modules, and so on.
_PASSES_MAX = 8


class Declared(msgspec.Struct, frozen=True):
    """A module that a file declares without a body: its path relative to the file's own module, `self::a::b`.

    `module_file` is its file according to `#[path]`, or empty without this attribute. It is relative to the directory
    of the declaring file if it begins with `./`, otherwise to the directory of this file's module.
    """

    path: str
    module_file: str = ""


class Modules:
    """The files of modules, and the modules of files."""

    def __init__(
        self, tree: PathTree, declared: Mapping[str, Sequence[Declared]], directory_of: Callable[[str], str]
    ) -> None:
        """Create the table from the declarations of files.

        `directory_of` returns the module of a file that no `#[path]` moves.
        """
        self._tree = tree
        self._directory_of = directory_of
        self._inline: set[str] = set()
        self._moved: dict[str, tuple[str, ...]] = {}
        self._names: dict[str, str] = {}
        self._bases: dict[str, str] = {}
        for _ in range(_PASSES_MAX):
            before = len(self._inline), len(self._names), dict(self._moved)
            for file in sorted(declared):
                self._add(file, declared[file])
            if before == (len(self._inline), len(self._names), self._moved):
                break

    def name(self, file: str) -> str:
        """Return the name of the module in a file."""
        return self._names.get(file) or self._directory_of(file)

    def is_inline(self, module: str) -> bool:
        """Return whether the body of a module is in the file that declares it."""
        return module in self._inline

    def files(self, module: str) -> tuple[str, ...]:
        """Return the files of a module. There are several only if conditional compilation chooses among them."""
        moved = self._moved.get(module)
        if moved is not None:
            return moved
        base = self._base(module)
        file = self._tree.first((f"{base}.rs", f"{base}/mod.rs"))
        return () if file is None else (file,)

    def _add(self, file: str, declared: Sequence[Declared]) -> None:
        name = self.name(file)
        for declaration in declared:
            parts = [part.removeprefix("r#") for part in declaration.path.split("::")[1:]]
            self._inline.update(join(name, "/".join(parts[:count])) for count in range(1, len(parts)))
            module = join(name, "/".join(parts))
            if declaration.module_file:
                base = parent(file) if declaration.module_file.startswith("./") else self._base(name)
                self._move(module, file, relative_to(base, declaration.module_file))
            elif self._base(module) != module:
                for file_of_module in self.files(module):
                    self._names.setdefault(file_of_module, module)

    def _move(self, module: str, declaring: str, place: str | None) -> None:
        if place is None:
            return
        file = self._tree.first((place, f"{place}.rs", f"{place}/mod.rs"))
        if file is None or file == declaring:
            return
        known = self._moved.get(module, ())
        if file not in known:
            self._moved[module] = (*known, file)
        self._names.setdefault(file, module)
        # A file that a `#[path]` names is like a mod.rs: files of its submodules are in its directory.
        self._bases.setdefault(module, place if file == f"{place}.rs" else parent(file))

    def _base(self, module: str) -> str:
        """Return the directory with the files of a module's submodules."""
        if not self._bases or not module:
            return module
        known = self._bases.get(module)
        return join(self._base(parent(module)), module.rpartition("/")[2]) if known is None else known
