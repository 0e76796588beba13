"""The modules of Rust crates and their files, according to the `mod` declarations in files.

Each module is named by a path: the directory of the crate root, then the names of the enclosing modules and its own. So
`a` in `src/lib.rs` is `src/a`, even if `#[path]` moves its file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from codebatch_workers.resolution.tree import PathTree, join, parent, relative_to

# The declarations are processed at most this many times. A file that a `#[path]` moves can declare further moved
# modules.
_PASSES_MAX = 8


class Declared(msgspec.Struct, frozen=True):
    """A module that a file declares without a body. `path` is relative to the file's own module: `self::a::b`.

    `module_file` is the module's file according to `#[path]`. It is empty without this attribute. If it begins with
    `./`, it is relative to the directory of the declaring file, otherwise to the directory of this file's module.
    """

    path: str
    module_file: str = ""


class Modules:
    """A table of the files of each module, and of the module of each file."""

    def __init__(
        self, tree: PathTree, declared: Mapping[str, Sequence[Declared]], directory_of: Callable[[str], str]
    ) -> None:
        """Compute the table from the declarations in files.

        `directory_of` returns the name of a file's module, if no `#[path]` moves the file.
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
        """Return the name of the module that a file contains."""
        return self._names.get(file) or self._directory_of(file)

    def is_inline(self, module: str) -> bool:
        """Return whether a module's body is in the file that declares the module."""
        return module in self._inline

    def files(self, module: str) -> tuple[str, ...]:
        """Return the files of a module. It has several only if conditional compilation chooses one of them."""
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
        # A file named by `#[path]` is like a mod.rs: its submodules have their files in its directory.
        self._bases.setdefault(module, place if file == f"{place}.rs" else parent(file))

    def _base(self, module: str) -> str:
        """Return the directory that contains the files of a module's submodules."""
        if not self._bases or not module:
            return module
        known = self._bases.get(module)
        return join(self._base(parent(module)), module.rpartition("/")[2]) if known is None else known
