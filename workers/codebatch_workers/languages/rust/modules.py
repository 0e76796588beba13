"""The modules of Rust crates and their files, according to the `mod` declarations in files.

The name of a module is a path: the directory of the crate root, then the names of the enclosing modules and its own. So
the module `a` of the crate `src/lib.rs` is named `src/a`, even if `#[path]` moves its file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from codebatch.model.record import Edge
from codebatch_workers.resolution.tree import PathTree, join_path, parent_directory, relative_to

# All declarations are read at most this many times. Each time can find further modules, because a file that a `#[path]`
# names can itself declare modules.
_MOVE_PASSES_MAX = 8


class ModuleTable:
    """A table of the files of each module. It also has the module of each file."""

    def __init__(
        self, tree: PathTree, declared: Mapping[str, Sequence[Edge]], directory_of: Callable[[str], str]
    ) -> None:
        """Compute the table. `declared` maps each file to the imports of the modules that it declares.

        The target of such an import is the path of the module from the one in the file: `self::a::b`. `module_file` is
        the file that `#[path]` sets. If it begins with `./`, it is relative to the directory of the declaring file.
        Otherwise, it is relative to the directory in which the submodules of the file are searched: `src/a` for
        `src/a.rs`.

        `directory_of` returns the name of the module in a file that no `#[path]` moves.
        """
        self._tree = tree
        self._directory_of = directory_of
        self._inline: set[str] = set()
        self._moved: dict[str, tuple[str, ...]] = {}
        self._names: dict[str, str] = {}
        self._bases: dict[str, str] = {}
        for _ in range(_MOVE_PASSES_MAX):
            before = len(self._inline), len(self._names), dict(self._moved)
            for file in sorted(declared):
                self._add_declarations(file, declared[file])
            if before == (len(self._inline), len(self._names), self._moved):
                break

    def module_of_file(self, file: str) -> str:
        """Return the name of the module whose body is the given file."""
        return self._names.get(file) or self._directory_of(file)

    def is_inline(self, module: str) -> bool:
        """Return whether a module's body is in the file that declares the module: `mod a { … }`."""
        return module in self._inline

    def files_of_module(self, module: str) -> tuple[str, ...]:
        """Return the files of a module. There are several only if conditional compilation chooses one of them."""
        moved = self._moved.get(module)
        if moved is not None:
            return moved
        base = self._submodule_directory(module)
        file = self._tree.first_existing((f"{base}.rs", f"{base}/mod.rs"))
        return () if file is None else (file,)

    def _add_declarations(self, file: str, declared: Sequence[Edge]) -> None:
        name = self.module_of_file(file)
        for declaration in declared:
            parts = [part.removeprefix("r#") for part in declaration.target.split("::")[1:]]
            self._inline.update(join_path(name, "/".join(parts[:count])) for count in range(1, len(parts)))
            module = join_path(name, "/".join(parts))
            if declaration.module_file:
                base = (
                    parent_directory(file)
                    if declaration.module_file.startswith("./")
                    else self._submodule_directory(name)
                )
                self._move_module(module, file, relative_to(base, declaration.module_file))
            elif self._submodule_directory(module) != module:
                for file_of_module in self.files_of_module(module):
                    self._names.setdefault(file_of_module, module)

    def _move_module(self, module: str, declaring: str, place: str | None) -> None:
        if place is None:
            return
        file = self._tree.first_existing((place, f"{place}.rs", f"{place}/mod.rs"))
        if file is None or file == declaring:
            return
        known = self._moved.get(module, ())
        if file not in known:
            self._moved[module] = (*known, file)
        self._names.setdefault(file, module)
        # If `#[path]` names a file, this file is like a mod.rs: the files of its submodules are in its directory.
        self._bases.setdefault(module, place if file == f"{place}.rs" else parent_directory(file))

    def _submodule_directory(self, module: str) -> str:
        """Return the directory that contains the files of the submodules of `module`."""
        if not self._bases or not module:
            return module
        known = self._bases.get(module)
        return (
            join_path(self._submodule_directory(parent_directory(module)), module.rpartition("/")[2])
            if known is None
            else known
        )
