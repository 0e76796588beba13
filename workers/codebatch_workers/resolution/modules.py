"""The modules of Rust: which file holds each, as files declare it.

A module is named by the directory that it would have if no `#[path]` said otherwise: that of its crate's root, then the
names of the modules that lead to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from codebatch_workers.resolution.tree import PathTree, join, parent, relative_to

# A file that a `#[path]` moves may declare others that are moved, and so on.
_PASSES_MAX = 8


class Declared(msgspec.Struct, frozen=True):
    """A module that a file declares without a body: its path from the file's own, `self::a::b`.

    `module_file` is the file that a `#[path]` gives it, from the directory of the file if it begins with `./`, else
    from that of the file's module; empty if no `#[path]` applies.
    """

    path: str
    module_file: str = ""


class Modules:
    """Finds the files of modules."""

    def __init__(
        self, tree: PathTree, declared: Mapping[str, Sequence[Declared]], directory_of: Callable[[str], str]
    ) -> None:
        """`declared` has what files declare; `directory_of` names the module of a file that no `#[path]` moves."""
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
        """Return the module that a file holds."""
        return self._names.get(file) or self._directory_of(file)

    def is_inline(self, module: str) -> bool:
        """Return whether a module has its body in the file that declares it."""
        return module in self._inline

    def files(self, module: str) -> tuple[str, ...]:
        """Return the files that a module may be in: several only if conditions choose among them."""
        moved = self._moved.get(module)
        if moved is not None:
            return moved
        base = self._base(module)
        found = self._tree.first((f"{base}.rs", f"{base}/mod.rs"))
        return () if found is None else (found,)

    def _add(self, file: str, declared: Sequence[Declared]) -> None:
        name = self.name(file)
        for each in declared:
            parts = [part.removeprefix("r#") for part in each.path.split("::")[1:]]
            self._inline.update(join(name, "/".join(parts[:count])) for count in range(1, len(parts)))
            module = join(name, "/".join(parts))
            if each.module_file:
                base = parent(file) if each.module_file.startswith("./") else self._base(name)
                self._move(module, file, relative_to(base, each.module_file))
            elif self._base(module) != module:
                for found in self.files(module):
                    self._names.setdefault(found, module)

    def _move(self, module: str, declaring: str, place: str | None) -> None:
        if place is None:
            return
        found = self._tree.first((place, f"{place}.rs", f"{place}/mod.rs"))
        if found is None or found == declaring:
            return
        known = self._moved.get(module, ())
        if found not in known:
            self._moved[module] = (*known, found)
        self._names.setdefault(found, module)
        # A file that a `#[path]` names is as a mod.rs: its modules stand beside it.
        self._bases.setdefault(module, place if found == f"{place}.rs" else parent(found))

    def _base(self, module: str) -> str:
        """Return the directory in which the modules of a module stand."""
        if not self._bases or not module:
            return module
        known = self._bases.get(module)
        return join(self._base(parent(module)), module.rpartition("/")[2]) if known is None else known
